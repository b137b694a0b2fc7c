"use strict";(()=>{var G=`:root {
  color-scheme: light;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
:root[data-theme="dark"] { color-scheme: dark; }
body { margin: 0; background: var(--page); color: var(--text); }
h1 { font-size: 1.15rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 0; }
a { color: var(--category-1); }
button, select { font: inherit; color: inherit; }
.top {
  position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 0.4rem 1.4rem;
  align-items: center; padding: 0.45rem 1.4rem; background: var(--page);
  border-bottom: 1px solid var(--grid);
}
.top nav { display: flex; flex-wrap: wrap; gap: 0 0.9rem; font-size: 0.9rem; }
.top nav a { text-decoration: none; }
.choices { margin-left: auto; display: flex; flex-wrap: wrap; gap: 0.6rem 1rem; align-items: center; }
.choices { font-size: 0.9rem; }
.choices select { max-width: min(13rem, 60vw); }
.choices label { white-space: nowrap; }
main { padding: 0.7rem 1.4rem 4rem; }
section, .grid { scroll-margin-top: 4rem; }
.panel {
  background: var(--panel); border: 1px solid var(--panel-border); border-radius: 14px;
  padding: 0.9rem 1.1rem 1.1rem; margin-bottom: 1.1rem;
}
.panel { min-width: 0; box-sizing: border-box; padding: 0.5rem 1.1rem 0.7rem; }
.panel .title { display: flex; gap: 0.8rem; align-items: baseline; }
.panel h2 { white-space: nowrap; }
.panel .facts { margin: 0; min-width: 0; font-size: 0.8rem; line-height: 1.3; }
/* Wrapped between facts, and within one only where it is wider than the panel. */
.panel .facts span { display: inline-block; }
.panel .maps { margin-top: 0.4rem; }
#story { display: flex; flex-wrap: wrap; gap: 0.4rem 2.2rem; align-items: center; }
#story p { flex: 1 1 24rem; margin: 0; font-size: 1.12rem; line-height: 1.35; }
.tiles { display: flex; flex-wrap: wrap; gap: 0.4rem 1.6rem; flex: 2 1 34rem; }
.tile { flex: 1 1 7.5rem; max-width: 13rem; border-left: 3px solid var(--category-1); padding-left: 0.6rem; }
.tile b { display: block; font-size: 1.35rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.tile span { display: block; color: var(--muted); font-size: 0.78rem; line-height: 1.25; }
.above { display: flex; flex-wrap: wrap; gap: 0.3rem 1.6rem; align-items: center; margin: 0.5rem 0 0.45rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0.1rem 0.9rem; align-items: center; font-size: 0.8rem; }
.legend .label { color: var(--muted); margin-right: -0.5rem; }
.ring { background: none !important; border: 2px solid var(--text); border-radius: 3px; box-sizing: border-box; }
.prompt { flex: 1 1 30rem; min-width: 0; display: flex; flex-wrap: wrap; gap: 0 0.9rem; align-items: center; }
.tokens { display: flex; flex-wrap: wrap; gap: 2px; }
.token {
  font-size: 0.8rem; line-height: 1.3; padding: 0 4px; border: 1px solid var(--grid); border-radius: 4px;
  background: none; cursor: default;
}
.token:hover, .token:focus-visible { background: var(--panel); border-color: var(--category-1); outline: none; }
/* One line, so that nothing moves while one points; the whole is in its title. */
.prompt .readout {
  margin: 0; height: 1.5em; min-height: 0; font-size: 0.8rem; color: var(--muted); flex: 1 1 20rem; min-width: 0;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
}
@media (min-width: 1000px) {
  .grid { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1.1rem; }
  .grid > :only-child { grid-column: 1 / -1; }
}
.facts { color: var(--muted); margin: 0.1rem 0 0.7rem; font-size: 0.88rem; }
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(64px, 78px)); gap: 8px 6px; }
/* A row a layer, where it fits; as large as the layers fit below the story. */
.maps.by-layer {
  grid-template-columns: repeat(var(--heads), minmax(0, max(40px, (100vh - 20.7rem) / var(--layers))));
  gap: 1px 2px; justify-content: space-between;
}
.head {
  position: relative; padding: 1px; border: 1px solid transparent; border-radius: 4px;
  background: none; cursor: pointer; border-bottom: 3px solid var(--role); min-width: 0;
  border-image: var(--stripe) 1; border-width: 0 0 3px;
}
.map { display: block; position: relative; overflow: hidden; }
.head canvas { display: block; width: 100% !important; height: auto !important; background: var(--empty); border-radius: 2px; }
/* The row and the column of the token that is pointed at. */
.pointed .map::before, .pointed .map::after {
  content: ""; position: absolute; background: var(--category-0); opacity: 0.38; pointer-events: none;
}
.pointed .map::before {
  left: 0; width: calc(100% * (var(--token) + 1) / var(--tokens)); height: calc(100% / var(--tokens));
  top: calc(100% * var(--token) / var(--tokens));
}
.pointed .map::after {
  left: calc(100% * var(--token) / var(--tokens)); width: calc(100% / var(--tokens));
  top: calc(100% * var(--token) / var(--tokens)); bottom: 0;
}
.head.member { outline: 2px solid var(--text); outline-offset: -1px; }
.rank {
  position: absolute; top: 16px; right: 4px; font-size: 10px; line-height: 1.2; font-weight: 700; color: var(--text);
}
.head:hover, .head:focus-visible { outline: 2px solid var(--category-1); outline-offset: -1px; }
.head .label {
  position: absolute; top: 3px; right: 5px; font-size: 10px; line-height: 1.2; color: var(--muted);
  font-variant-numeric: tabular-nums;
}
.plain { margin-top: 2.2rem; }
.row { display: flex; flex-wrap: wrap; gap: 1.6rem; align-items: flex-start; margin-top: 0.7rem; }
figure { margin: 0; }
figcaption { color: var(--muted); font-size: 0.9rem; margin-bottom: 0.3rem; }
figcaption b { color: var(--text); }
table { border-collapse: collapse; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; padding: 0.22rem 0.9rem 0.22rem 0; }
td { text-align: right; padding: 0.22rem 0.9rem; }
thead th { color: var(--muted); border-bottom: 1px solid var(--grid); }
thead th:not(:first-child) { text-align: right; padding: 0.22rem 0.9rem; }
.dot { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 50%; }
.layout td { padding: 1px; }
.layout th { color: var(--muted); font-size: 0.75rem; padding: 0 0.4rem 0 0; }
.layout button { width: 20px; height: 20px; border: 0; border-radius: 3px; padding: 0; cursor: pointer; display: block; }
.layout button:hover, .layout button:focus-visible { outline: 2px solid var(--category-1); }
.statistics td { white-space: nowrap; }
.bars { min-width: 140px; text-align: left; }
.measure { position: relative; margin: 3px 0; }
.whisker {
  position: absolute; top: -1px; height: 8px; box-sizing: border-box; border: solid var(--text); border-width: 0 1px;
  background: linear-gradient(var(--text), var(--text)) center / 100% 1px no-repeat;
}
.bar { display: block; height: 6px; border-radius: 2px; background: var(--category-0); }
.bar.model-1 { background: var(--category-1); }
dialog {
  border: 1px solid var(--panel-border); border-radius: 14px; background: var(--page); color: var(--text);
  padding: 1rem 1.4rem 1.4rem; max-width: calc(100vw - 2rem); box-sizing: border-box;
}
dialog::backdrop { background: rgb(10 15 22 / 55%); }
dialog header { display: flex; gap: 0.5rem; align-items: center; }
dialog header h2 { margin-right: auto; }
dialog header button {
  border: 1px solid var(--frame); background: none; border-radius: 6px; min-width: 2rem; cursor: pointer;
}
.roleline { display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; margin: 0.2rem 0 0; font-size: 0.9rem; }
.large canvas { cursor: crosshair; }
.readout { display: block; min-height: 1.6em; margin-top: 0.5rem; font-variant-numeric: tabular-nums; }
.ramp { display: flex; font-size: 11px; }
dialog .ramp { margin: 0.3rem 0 0.8rem; }
.ramp span { width: 34px; text-align: center; padding: 1px 0; border: 1px solid var(--frame); }
.numbers { margin-top: 0.4rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1.2rem; font-size: 0.92rem; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1rem 0 0; }
.scroll { overflow-x: auto; max-width: 100%; }
figure { max-width: 100%; }
figure > canvas { max-width: 100%; }
.drawn img { display: block; max-width: 100%; background: var(--drawn); border: 1px solid var(--frame); border-radius: 8px; }
.drawn img.dark { background: var(--page); }
:root:not([data-theme="dark"]) .drawn img.dark, :root[data-theme="dark"] .drawn img.light { display: none; }
.failure { padding: 2rem; }
@media (max-width: 640px) {
  main { padding: 0.5rem 0.6rem 3rem; }
  .top { position: static; padding: 0.45rem 0.6rem; }
  .panel { padding: 0.6rem 0.5rem; }
  .panel .title { display: block; }
  .maps.by-layer { grid-template-columns: repeat(var(--heads), minmax(0, 1fr)); }
  .head .label { font-size: 8px; }
  dl { grid-template-columns: 1fr; }
  .prompt .readout { flex-basis: 100%; height: 6em; white-space: normal; }
  #story p { flex-basis: 100%; }
}
@media print {
  .top, .prompt, dialog { display: none !important; }
  .maps.by-layer { grid-template-columns: repeat(var(--heads), minmax(0, 1fr)); }
  .panel, figure, table { break-inside: avoid; }
  h2, h3, figcaption { break-after: avoid; }
  .task .row { display: block; }
  .task figure { margin-bottom: 0.9rem; }
  .statistics td, .statistics th { padding: 0.22rem 0.4rem !important; }
  .bars { min-width: 90px; }
  /* What is chosen is said, not offered. */
  select { appearance: none; border: 0; background: none; padding: 0; }
  input[type="checkbox"], input[type="checkbox"]:not(:checked) + label { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`;function R(e){let t=parseInt(e.slice(1),16);return[t>>16,t>>8&255,t&255]}function N(e,t){let r=Math.min(Math.max(t,0),1)*(e.length-1),o=Math.min(Math.floor(r),e.length-2),i=e[o],s=e[o+1],a=r-o;return[i[0]+a*(s[0]-i[0]),i[1]+a*(s[1]-i[1]),i[2]+a*(s[2]-i[2])]}var W=class{empty;undefined;text;page;magnitude;negative;positive;constructor(t){this.empty=R(t.empty),this.undefined=R(t.undefined),this.text=R(t.text),this.page=R(t.page),this.magnitude=t.magnitude.map(R),this.negative=[this.empty,...t.negative.map(R)],this.positive=[this.empty,...t.positive.map(R)]}},L,ee=[];function te(e,t){let r=e.colors[t];L=new W(r),ee=e.roles;let o=document.documentElement;o.dataset.theme=t;let i=(s,a)=>o.style.setProperty(`--${s}`,a);i("page",r.page),i("panel",r.panel),i("panel-border",r.panel_border),i("text",r.text),i("muted",r.muted),i("grid",r.grid),i("frame",r.frame),i("empty",r.empty),r.categories.forEach((s,a)=>i(`category-${a}`,s)),i("last-category",r.categories.at(-1)),i("drawn",e.colors.light.page)}function S(e){return e===0?L.empty:N(L.magnitude,e)}function I(e){return e===null?L.undefined:e<0?N(L.negative,-e):N(L.positive,e)}function U(e){return`rgb(${e.map(t=>Math.round(t)).join(" ")})`}function Z(e){let[t,r,o]=e.map(i=>{let s=i/255;return s<=.04045?s/12.92:((s+.055)/1.055)**2.4});return .2126*t+.7152*r+.0722*o}function re(e){let t=Z(e),r=o=>{let i=Z(o);return(Math.max(i,t)+.05)/(Math.min(i,t)+.05)};return r(L.text)>=r(L.page)?L.text:L.page}function T(e){let t=e.split("+").map(H);return`linear-gradient(90deg, ${t.map((r,o)=>`${r} ${100*o/t.length}% ${100*(o+1)/t.length}%`).join(", ")})`}function H(e){let t=ee.indexOf(e.split(/[+ ]/)[0]);return t<0?"var(--last-category)":`var(--category-${t})`}var K=class{constructor(t,r,o){this.size=t;this.cells=r;this.start=o}size;cells;start;at(t,r){return r>t?0:this.cells[this.start+t*(t+1)/2+r]/65535}};async function Y(e){let t=Uint8Array.from(atob(e),o=>o.charCodeAt(0)),r=new Blob([t]).stream().pipeThrough(new DecompressionStream("deflate"));return new Response(r).arrayBuffer()}async function ke(e,t,r){let o=new DataView(await Y(e)),i=new Uint16Array(o.byteLength/2);for(let a=0;a<i.length;++a)i[a]=o.getUint16(2*a,!0);let s=r*(r+1)/2;if(i.length!==t*s)throw new Error(`the report holds ${i.length} weights where ${t*s} were expected`);return Array.from({length:t},(a,l)=>new K(r,i,l*s))}var X=class{constructor(t){this.report=t}report;unpacked=new Map;maps(t){let r=this.unpacked.get(t);if(!r){let{tokens:o,maps:i}=this.report.prompts[t];r=Promise.all(this.report.models.map((s,a)=>ke(i[a],s.heads.length,o.length))),this.unpacked.set(t,r)}return r}};function ne(){let e=document.getElementById("filigree-data");if(!e?.textContent)throw new Error("this page holds no report");let t=JSON.parse(e.textContent);if(t.format!=="filigree-report-3")throw new Error(`this viewer does not know the format '${t.format}'`);return new X(t)}function O(e){return e.heads.length/e.layers.length}function M(e){return e.replace(/ /g,"\xB7").replace(/\n/g,"\u23CE").replace(/\t/g,"\u21E5")||"\u2205"}function n(e,t={},...r){let o=document.createElement(e);for(let[i,s]of Object.entries(t))o.setAttribute(i,s);return o.append(...r.filter(i=>i!=null)),o}function j(e){return n("div",{class:"scroll"},e)}function P(e,t){let r=n("canvas");return Le(r,e,t),r}function Le(e,t,r){let o=window.devicePixelRatio||1;e.width=Math.round(t*o),e.height=Math.round(r*o),e.style.width=`${t}px`,e.style.height=`${r}px`}function C(e){let t=e.getContext("2d");if(!t)throw new Error("this browser has no canvas");return t}function v(e,t=3){return e==null||!Number.isFinite(e)?"\u2013":e!==0&&Math.abs(e)<10**-t?e.toExponential(1):e.toFixed(t)}var A={theme:"light",prompt:0,order:"layer",head:null,task:0},oe=[];function w(){return A}function h(e){let t=A;A={...A,...e};for(let r of oe)r(A,t)}function x(e){oe.push(e)}function J(){let e=[0,.001,.25,.5,.75,1].map(t=>{let r=S(t),o=`background: ${U(r)}; color: ${U(re(r))}`;return n("span",{style:o},t===.001?">0":String(t))});return n("div",{class:"ramp","aria-label":"scale of weights"},...e)}function ae(e){let{models:t,roles:r,tasks:o}=e.report,i=new Set(t.flatMap(l=>l.roles.flatMap(({role:d})=>d.split("+")))),s=n("div",{class:"legend",id:"legend"}),a=()=>{let l=r.filter(d=>[...i].some(m=>m.split(" ")[0]===d)).map(d=>n("span",{},n("i",{class:"dot",style:`background: ${H(d)}`}),` ${d}`));[...i].some(d=>!r.includes(d.split(" ")[0]))&&l.push(n("span",{},n("i",{class:"dot",style:`background: ${H("other")}`})," other")),o.some(d=>d.heads.some(m=>m.length>0))&&l.push(n("span",{},n("i",{class:"dot ring"})," in the circuit")),s.replaceChildren(n("span",{class:"label"},"weight"),J(),...l)};return x((l,d)=>{l.theme!==d.theme&&a()}),a(),s}function z(e,t,r){let o=document.createElement("canvas");o.width=t,o.height=e;let i=new ImageData(t,e);for(let s=0;s<e;++s)for(let a=0;a<t;++a){let l=r(s,a);if(l===null)continue;let d=4*(s*t+a);i.data[d]=l[0],i.data[d+1]=l[1],i.data[d+2]=l[2],i.data[d+3]=255}return C(o).putImageData(i,0,0),o}function q(e,t){let r=C(e);r.imageSmoothingEnabled=t.width>e.width,r.imageSmoothingQuality="high",r.clearRect(0,0,e.width,e.height),r.drawImage(t,0,0,e.width,e.height)}function ie(e,t){let{width:r,height:o}=e,i=C(t).getImageData(0,0,t.width,t.height),s=new ImageData(r,o),a=(l,d,m)=>{let p=Math.floor(l*m/d);return[p,Math.max(p+1,Math.floor((l+1)*m/d))]};for(let l=0;l<o;++l){let[d,m]=a(l,o,t.height);for(let p=0;p<r;++p){let[c,u]=a(p,r,t.width);for(let f=0;f<4;++f){let y=0;for(let k=d;k<m;++k)for(let b=c;b<u;++b)y+=i.data[4*(k*t.width+b)+f];s.data[4*(l*r+p)+f]=y/((m-d)*(u-c))}}}C(e).putImageData(s,0,0)}var D=class{constructor(t,r,o,i,s,a,l){this.tokens=i;let d=s/i.length>=9;this.margin=d?78:8,this.side=s;let m=s+this.margin;this.canvas=P(m,m),this.canvas.dataset.map=o,this.picture=z(i.length,i.length,(p,c)=>c>p?null:a(p,c)),this.canvas.addEventListener("pointermove",p=>l(this.cellAt(p))),this.canvas.addEventListener("pointerleave",()=>l(null)),this.root=n("figure",{class:"large"},n("figcaption",{},n("b",{},t),` ${r}`),this.canvas),this.draw(null)}tokens;root;canvas;picture;margin;side;cellAt(t){let r=this.canvas.getBoundingClientRect(),o=this.tokens.length,i=Math.floor((t.clientX-r.left-this.margin)/this.side*o),s=Math.floor((t.clientY-r.top)/this.side*o);return i<0||s>=o||i>s?null:{query:s,key:i}}draw(t){let r=C(this.canvas),o=getComputedStyle(document.documentElement),i=o.getPropertyValue("--text"),s=o.getPropertyValue("--muted");r.setTransform(1,0,0,1,0,0),r.clearRect(0,0,this.canvas.width,this.canvas.height);let a=this.canvas.width/(this.side+this.margin);r.scale(a,a);let{side:l,margin:d}=this,m=this.tokens.length,p=l/m;r.imageSmoothingEnabled=!1,r.drawImage(this.picture,d,0,l,l),r.strokeStyle=s,r.lineWidth=1,r.beginPath(),r.moveTo(d,0),r.lineTo(d,l),r.lineTo(d+l,l),r.stroke(),d>8&&this.labels(r,t,i,s),t&&(r.strokeStyle=o.getPropertyValue("--category-0"),r.lineWidth=1.5,r.strokeRect(d+t.key*p,t.query*p,p,p))}labels(t,r,o,i){let{side:s,margin:a}=this,l=s/this.tokens.length;t.font=`${Math.min(12,l*.95)}px system-ui, sans-serif`,t.textBaseline="middle",t.textAlign="right";let d=m=>{let p=M(m);return p.length>11?`${p.slice(0,10)}\u2026`:p};this.tokens.forEach((m,p)=>{t.fillStyle=!r||r.query===p?o:i,t.fillText(d(m),a-5,(p+.5)*l),t.save(),t.translate(a+(p+.5)*l,s+5),t.rotate(-Math.PI/2),t.fillStyle=!r||r.key===p?o:i,t.fillText(d(m),0,0),t.restore()})}};function Me(e,t){let r=0;for(let o=0;o<e.size;++o)for(let i=0;i<=o;++i)r=Math.max(r,Math.abs(t.at(o,i)-e.at(o,i)));return r}function _(e,t){let{head:r}=w(),o=e.report.models[0].roles.length;r!==null&&h({head:(r+t+o)%o})}function Ee(e,t){let r=e.report.models.map(o=>{let{role:i,confidence:s}=o.roles[t],a=n("i",{class:"dot",style:`background: ${T(i)}`});return n("span",{},a,` ${o.name}: ${i} (${s.toFixed(2)})`)});return n("p",{class:"roleline"},...r)}function $e(e,t){let{models:r,statistics:o}=e.report,i=o.map(a=>n("tr",{},n("th",{},a.label),...r.map(l=>n("td",{},v(l.statistics[t]?.[a.name]))))),s=n("tr",{},n("th",{}),...r.map(a=>n("th",{},a.name)));return n("table",{class:"numbers"},n("thead",{},s),n("tbody",{},...i))}function Re(e,t){let r=(o,i,s)=>{let a=n("button",{type:"button","aria-label":o,title:o},i);return a.addEventListener("click",s),a};return n("header",{},n("h2",{id:"detail-title"},t),r("previous head (left arrow)","\u2190",()=>_(e,-1)),r("next head (right arrow)","\u2192",()=>_(e,1)),r("close (Escape)","\xD7",()=>h({head:null})))}function se(e){let t=n("dialog",{id:"detail","aria-labelledby":"detail-title"}),{models:r}=e.report,o=0,i=async()=>{let s=++o,{head:a,prompt:l}=w();if(a===null)return t.close();let d=await e.maps(l);if(s!==o)return;let m=d.map(g=>g[a]),p=e.report.prompts[l].tokens,c=r.length===2?3:1,u=window.innerWidth>=900?c:1,f=Math.max(180,Math.min(520,(window.innerWidth-120)/u-90)),y=n("output",{class:"readout",id:"readout"}),k="Point at a cell: rows are queries, columns are keys.";y.textContent=k;let b=[],V=g=>{for(let E of b)E.draw(g);if(!g)return void(y.textContent=k);let $=r.map((E,F)=>`${E.name} ${v(m[F].at(g.query,g.key),4)}`);y.textContent=`query ${g.query} \u201C${M(p[g.query])}\u201D \u2192 key ${g.key} \u201C${M(p[g.key])}\u201D: ${$.join(", ")}`};if(r.forEach((g,$)=>b.push(new D(g.name,"weights 0 to 1",`model-${$}`,p,f,(E,F)=>S(m[$].at(E,F)),V))),r.length===2){let g=Me(m[0],m[1])||1;b.push(new D("difference",`${r[1].name} less ${r[0].name}, \xB1${v(g,2)}`,"difference",p,f,($,E)=>I((m[1].at($,E)-m[0].at($,E))/g),V))}t.replaceChildren(Re(e,`Head ${r[0].heads[a]}`),Ee(e,a),n("div",{class:"row"},...b.map(g=>g.root)),y,J(),$e(e,a)),t.open||t.showModal()};return x((s,a)=>{(s.head!==a.head||s.prompt!==a.prompt||s.theme!==a.theme)&&i()}),t.addEventListener("close",()=>h({head:null})),t.addEventListener("click",s=>{s.target===t&&h({head:null})}),document.addEventListener("keydown",s=>{w().head!==null&&(s.key==="ArrowLeft"&&_(e,-1),s.key==="ArrowRight"&&_(e,1))}),t}var le=96,Te=20;function de(e){return z(e.size,e.size,(t,r)=>r>t?null:S(e.at(t,r)))}function Ce(e,t){let r=e.roles.map((o,i)=>i);return t==="role"&&r.sort((o,i)=>e.roles[o].role.localeCompare(e.roles[i].role)),r}function Se(e,t,r){return(e.report.tasks[w().task]?.heads[t]?.indexOf(r)??-1)+1}function He(e,t){e.classList.toggle("member",t>0),e.querySelector(".rank").textContent=t>0?String(t):""}function Pe(e,t,r,o){let{role:i,confidence:s}=e.roles[r],a=e.heads[r],l=P(le,le);q(l,de(o));let d=n("button",{class:"head",type:"button","data-model":String(t),"data-head":a,"aria-label":`${a} of ${e.name}: ${i}`,title:`${a} \u2013 ${i} (${s.toFixed(2)})`,style:`--role: ${H(i)}; --stripe: ${T(i)}`},n("span",{class:"map"},l),n("span",{class:"label"},a),n("span",{class:"rank"}));return d.addEventListener("click",()=>h({head:r})),d}function me(e){let t=e.report.models.map(l=>{let d=n("div",{class:"maps"}),m=l.facts.flatMap((c,u)=>[u>0?" \xB7 ":null,n("span",{},c.join(" "))]);return{panel:n("section",{class:"panel"},n("div",{class:"title"},n("h2",{},l.name),n("p",{class:"facts"},...m)),d),maps:d}}),r=0,o=async()=>{let l=++r,{prompt:d,order:m}=w(),p=await e.maps(d);l===r&&(e.report.models.forEach((c,u)=>{let f=Ce(c,m),y=O(c),k=m==="layer"&&y<=Te;t[u].maps.classList.toggle("by-layer",k),t[u].maps.style.setProperty("--heads",String(y)),t[u].maps.style.setProperty("--layers",String(c.layers.length)),t[u].maps.replaceChildren(...f.map(b=>Pe(c,u,b,p[u][b])))}),i=p,a())},i=[],s=()=>i.forEach((l,d)=>t[d].maps.querySelectorAll(".head").forEach(m=>{let p=e.report.models[d].heads.indexOf(m.dataset.head);ie(m.querySelector("canvas"),de(l[p]))})),a=()=>t.forEach(({maps:l},d)=>l.querySelectorAll(".head").forEach(m=>He(m,Se(e,d,m.dataset.head))));return x((l,d)=>{(l.prompt!==d.prompt||l.order!==d.order)&&o(),l.theme!==d.theme&&s(),l.task!==d.task&&a()}),o(),n("div",{class:"grid",id:"grid"},...t.map(({panel:l})=>l))}var pe=400;function ze(e,t,r){let o=t.matrix.length,i=r?t.order:t.order.map((m,p)=>p),s=P(pe,pe),a=(m,p)=>t.matrix[i[m]][i[p]]??null;q(s,z(o,o,(m,p)=>I(a(m,p))));let l=n("output",{class:"readout"}),d=m=>{let p=s.getBoundingClientRect(),c=(u,f)=>Math.min(o-1,Math.max(0,Math.floor(u/f*o)));return[c(m.clientY-p.top,p.height),c(m.clientX-p.left,p.width)]};return s.addEventListener("pointermove",m=>{let[p,c]=d(m),u=[i[p],i[c]].map(f=>e.heads[f]);l.textContent=`${u.join(" and ")}: ${v(a(p,c),3)}`}),s.addEventListener("pointerleave",()=>l.textContent=""),s.addEventListener("click",m=>h({head:i[d(m)[0]]})),n("figure",{},n("figcaption",{},e.name),s,l)}function ce(e){let{models:t,pairs:r}=e.report,o=r[0]?.map(d=>d.measure)??[];if(o.length===0)return null;let i=n("div",{class:"row"}),s=n("select",{"aria-label":"correlation"});s.append(...o.map((d,m)=>n("option",{value:String(m)},d)));let a=n("input",{type:"checkbox",id:"clustered",checked:""}),l=()=>i.replaceChildren(...t.map((d,m)=>ze(d,r[m][Number(s.value)],a.checked)));return s.addEventListener("change",l),a.addEventListener("change",l),x((d,m)=>{d.theme!==m.theme&&l()}),l(),n("section",{id:"pairs",class:"plain"},n("h2",{},"Head pairs"),n("p",{class:"facts"},s," ",a,n("label",{for:"clustered"}," ordered by clustering; "),"blue is -1, orange 1; grey is undefined"),i)}function Ae(e){let t=new Map;for(let{role:r}of e.roles)t.set(r,(t.get(r)??0)+1);return t}function Ve(e){let t=e.map(Ae),r=[...new Set(t.flatMap(a=>[...a.keys()]))],o=a=>t.reduce((l,d)=>l+(d.get(a)??0),0);r.sort((a,l)=>o(l)-o(a)||a.localeCompare(l));let i=r.map(a=>{let l=n("i",{class:"dot",style:`background: ${T(a)}`}),d=t.map(m=>n("td",{},String(m.get(a)??0)));return n("tr",{},n("th",{},l,` ${a}`),...d)}),s=n("tr",{},n("th",{},"role"),...e.map(a=>n("th",{},a.name)));return n("table",{},n("thead",{},s),n("tbody",{},...i))}function Ie(e){let t=O(e),r=e.layers.map((o,i)=>{let s=Array.from({length:t},(a,l)=>{let d=i*t+l,{role:m,confidence:p}=e.roles[d],c=`${e.heads[d]} \u2013 ${m} (${p.toFixed(2)})`,u=n("button",{type:"button",title:c,"aria-label":`${c}, ${e.name}`,style:`background: ${T(m)}; opacity: ${.35+.65*p}`});return u.addEventListener("click",()=>h({head:d})),n("td",{},u)});return n("tr",{},n("th",{},o),...s)});return n("figure",{},n("figcaption",{},e.name),n("table",{class:"layout"},n("tbody",{},...r)))}function ue(e){let{models:t}=e.report;return n("section",{id:"roles",class:"plain"},n("h2",{},"Head roles"),n("div",{class:"row"},Ve(t),...t.map(Ie)))}function Oe(e,t){return e==null?v(e):t==="%"?`${v(100*e,2)} %`:v(e)}function Q(e,t){if(e==null)return v(e);let r=t==="%"?v(100*e,2):v(e);return e>0?`+${r}`:r}function je(e){return e.p!=null&&e.least_p!=null&&e.p<=e.least_p}function qe(e){let t=e.intervals.flatMap(s=>s??[]),r=Math.max(...[...e.values,...t].map(s=>Math.abs(s)),1e-12),o=s=>100*Math.abs(s)/r,i=e.values.map((s,a)=>{let l=e.intervals[a],d=l?Math.min(o(l[0]),o(l[1])):0,m=l?Math.max(o(l[0]),o(l[1])):0;return n("div",{class:"measure"},n("i",{class:`bar model-${a}`,style:`width: ${o(s)}%`}),l?n("i",{class:"whisker",style:`left: ${d}%; width: ${m-d}%`}):null)});return n("td",{class:"bars"},...i)}function ge(e){let{models:t,statistics:r}=e.report;if(r.length===0)return null;let o=r.some(a=>a.change!=null),i=[n("th",{},"statistic"),...t.map(a=>n("th",{},a.name)),n("th",{},""),...o?[n("th",{},"change"),n("th",{},"95 % interval"),n("th",{},"p")]:[]],s=r.map(a=>n("tr",{},n("th",{},a.label),...a.values.map(l=>n("td",{},Oe(l,a.unit))),qe(a),...o?[n("td",{},Q(a.change,a.unit)+(a.unit==="%"?" points":"")),n("td",{},`${Q(a.low,a.unit)} to ${Q(a.high,a.unit)}`),n("td",{},`${je(a)?"\u2264 ":""}${v(a.p,4)}`)]:[]));return n("section",{id:"statistics",class:"plain"},n("h2",{},"Statistics"),j(n("table",{class:"statistics"},n("thead",{},n("tr",{},...i)),n("tbody",{},...s))),o?n("p",{class:"facts"},"Means over heads. Whiskers: bootstrap over prompts. Interval: paired bootstrap; p: paired permutation test, ","\u2264 where so many prompts cannot give less."):null)}function De(e){return n("div",{class:"tile"},n("b",{},e.value),n("span",{},e.label))}function he(e){let{story:t}=e.report;return t.line?n("section",{id:"story"},n("p",{},t.line),n("div",{class:"tiles"},...t.numbers.map(De))):null}function _e(e){return e.rows.length===0?null:j(n("table",{},n("thead",{},n("tr",{},...e.columns.map(t=>n("th",{},t)))),n("tbody",{},...e.rows.map(([t,...r])=>n("tr",{},n("th",{},t),...r.map(o=>n("td",{},o)))))))}function Be(e){let t=e.figures.map(r=>{let o=(s,a)=>{let l=n("img",{alt:r.title,class:s});return Y(a).then(d=>{l.src=`data:image/svg+xml,${encodeURIComponent(new TextDecoder().decode(d))}`}),l},i=r.dark_svg===null?[o("both",r.svg)]:[o("light",r.svg),o("dark",r.dark_svg)];return n("figure",{class:"drawn"},n("figcaption",{},n("b",{},r.title),` ${r.caption}`),...i)});return n("article",{class:"task"},n("h3",{},e.name),n("p",{class:"facts"},[e.description,...e.facts.map(([r,o])=>`${r}: ${o}`)].join(" \xB7 ")),_e(e),n("div",{class:"row"},...t))}function fe(e){let{tasks:t}=e.report;return t.length===0?null:n("section",{id:"tasks",class:"plain"},n("h2",{},"Tasks"),...t.map(Be))}var Fe=3,Ne=.05;function We(e,t){return e.map((o,i)=>{let s={head:i,key:0,weight:0};for(let a=0;a<=t;++a)o.at(t,a)>s.weight&&(s={head:i,key:a,weight:o.at(t,a)});return s}).filter(o=>o.weight>=Ne).sort((o,i)=>i.weight-o.weight)}function be(e,t){let r=n("div",{class:"tokens","aria-label":"tokens of the prompt"}),o=n("output",{class:"readout",id:"token-readout"}),i="Point at a token: its row and column are shown in every head.",s=0,a=async d=>{let m=++s,{prompt:p}=w(),{tokens:c}=e.report.prompts[p];if(t.classList.toggle("pointed",d!==null),d===null)return void(o.textContent=i);t.style.setProperty("--tokens",String(c.length)),t.style.setProperty("--token",String(d));let u=await e.maps(p);if(m!==s)return;let f=e.report.models.map((y,k)=>{let b=We(u[k],d),V=b.slice(0,Fe).map(g=>`${y.heads[g.head]} \u2192 ${M(c[g.key])} ${g.weight.toFixed(2)}`);return`${y.name} (${b.length} heads): ${V.join(", ")||"nothing"}`});o.title=o.textContent=`\u201C${M(c[d])}\u201D looks at \u2013 ${f.join(" \xB7 ")}`},l=()=>{let{tokens:d}=e.report.prompts[w().prompt];r.replaceChildren(...d.map((m,p)=>{let c=n("button",{type:"button",class:"token","data-token":String(p)},M(m));return c.addEventListener("pointerenter",()=>{a(p)}),c.addEventListener("pointerleave",()=>{a(null)}),c.addEventListener("focus",()=>{a(p)}),c.addEventListener("blur",()=>{a(null)}),c})),a(null)};return x((d,m)=>{d.prompt!==m.prompt&&l()}),l(),n("div",{class:"prompt"},r,o)}function Ue(e){let t=n("select",{id:"prompt","aria-label":"prompt"});return e.report.prompts.forEach((r,o)=>{let i=r.text.length>90?`${r.text.slice(0,88)}\u2026`:r.text;t.append(n("option",{value:String(o)},M(i).replace(/\u00b7/g," ")))}),t.addEventListener("change",()=>h({prompt:Number(t.value)})),x(r=>t.value=String(r.prompt)),n("label",{},"prompt ",t)}function Ke(){let e=n("select",{id:"order","aria-label":"order of heads"}),t=["layer","role"];for(let r of t)e.append(n("option",{value:r},`by ${r}`));return e.addEventListener("change",()=>h({order:e.value})),n("label",{},"heads ",e)}function Xe(e){let{tasks:t}=e.report;if(t.every(o=>o.heads.every(i=>i.length===0)))return null;let r=n("select",{id:"circuit","aria-label":"circuit that is marked"});return t.forEach((o,i)=>r.append(n("option",{value:String(i)},o.name))),r.append(n("option",{value:"-1"},"none")),r.addEventListener("change",()=>h({task:Number(r.value)})),n("label",{},"circuit of ",r)}var ve=null,xe=!1,ye=matchMedia("(prefers-color-scheme: dark)");function B(){h({theme:xe?"light":ve??(ye.matches?"dark":"light")})}function Ye(){let e=n("button",{type:"button",id:"theme",title:"light or dark","aria-label":"light or dark"},"\u25D0");return e.addEventListener("click",()=>{ve=w().theme==="dark"?"light":"dark",B()}),e}function Je(e){x(r=>te(e.report,r.theme));let t=r=>{xe=r,B()};addEventListener("beforeprint",()=>t(!0)),addEventListener("afterprint",()=>t(!1)),ye.addEventListener("change",B),B()}function Qe(e){let t=e.report.made.flatMap(([r,o])=>[n("dt",{},r),n("dd",{},n("code",{},o))]);return n("section",{id:"made",class:"plain"},n("h2",{},"How this was made"),n("dl",{},...t))}function Ge(e){let t=e.report.models[0],r=()=>{let o=t.heads.indexOf(location.hash.slice(1));o>=0&&h({head:o})};x((o,i)=>{if(o.head===i.head)return;let s=o.head===null?"":`#${t.heads[o.head]}`;history.replaceState(null,"",location.pathname+location.search+s)}),addEventListener("hashchange",r),r()}function Ze(e){let{report:t}=e;document.title=t.title,Je(e);let r=[fe(e),ue(e),ge(e),ce(e),Qe(e)],o=[n("a",{href:"#grid"},"maps")];for(let a of r)a&&o.push(n("a",{href:`#${a.id}`},a.querySelector("h2").textContent.toLowerCase()));let i=n("header",{class:"top"},n("h1",{},t.title),n("nav",{},...o),n("div",{class:"choices"},Ue(e),Ke(),Xe(e),Ye())),s=me(e);document.body.replaceChildren(i,n("main",{},he(e),n("div",{class:"above"},ae(e),be(e,s)),s,...r.filter(a=>a!==null)),se(e)),Ge(e),document.body.dataset.ready=String(w().prompt>=0)}document.head.append(n("style",{},G));try{Ze(ne())}catch(e){document.body.replaceChildren(n("p",{class:"failure"},e instanceof Error?e.message:String(e)))}})();
