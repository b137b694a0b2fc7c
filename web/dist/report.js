"use strict";(()=>{var re=`:root {
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
`;var X=class{constructor(t,r,o){this.size=t;this.cells=r;this.start=o}size;cells;start;at(t,r){return r>t?0:this.cells[this.start+t*(t+1)/2+r]/65535}};async function J(e){let t=atob(e),r=new Uint8Array(t.length);for(let a=0;a<t.length;++a)r[a]=t.charCodeAt(a);let o=new Blob([r]).stream().pipeThrough(new DecompressionStream("deflate"));return new Response(o).arrayBuffer()}async function Se(e,t,r){let o=new DataView(await J(e)),a=new Uint16Array(o.byteLength/2);for(let i=0;i<a.length;++i)a[i]=o.getUint16(2*i,!0);let s=r*(r+1)/2;if(a.length!==t*s)throw new Error(`the report holds ${a.length} weights where ${t*s} were expected`);return Array.from({length:t},(i,l)=>new X(r,a,l*s))}var Y=class{constructor(t){this.report=t}report;unpacked=new Map;prompt(t){return this.report.prompts[t]}maps(t){let r=this.unpacked.get(t);if(!r){let{tokens:o,maps:a}=this.prompt(t);r=Promise.all(this.report.models.map((s,i)=>Se(a[i],s.heads.length,o.length))),this.unpacked.set(t,r)}return r}};function ne(){let e=document.getElementById("filigree-data");if(!e?.textContent)throw new Error("this page holds no report");let t=JSON.parse(e.textContent);if(t.format!=="filigree-report-3")throw new Error(`this viewer does not know the format '${t.format}'`);return new Y(t)}function O(e){return e.heads.length/e.layers.length}function M(e){return e.replace(/ /g,"\xB7").replace(/\n/g,"\u23CE").replace(/\t/g,"\u21E5")||"\u2205"}function C(e){let t=parseInt(e.slice(1),16);return[t>>16,t>>8&255,t&255]}function D(e,t){let r=Math.min(Math.max(t,0),1)*(e.length-1),o=Math.min(Math.floor(r),e.length-2),a=e[o],s=e[o+1],i=r-o;return[a[0]+i*(s[0]-a[0]),a[1]+i*(s[1]-a[1]),a[2]+i*(s[2]-a[2])]}var Q=class{empty;undefined;text;page;magnitude;negative;positive;constructor(t){this.empty=C(t.empty),this.undefined=C(t.undefined),this.text=C(t.text),this.page=C(t.page),this.magnitude=t.magnitude.map(C),this.negative=[this.empty,...t.negative.map(C)],this.positive=[this.empty,...t.positive.map(C)]}},L,ae=[];function ie(e,t){let r=e.colors[t];L=new Q(r),A=null,ae=e.roles;let o=document.documentElement;o.dataset.theme=t;let a=(s,i)=>o.style.setProperty(`--${s}`,i);a("page",r.page),a("panel",r.panel),a("panel-border",r.panel_border),a("text",r.text),a("muted",r.muted),a("grid",r.grid),a("frame",r.frame),a("empty",r.empty),r.categories.forEach((s,i)=>a(`category-${i}`,s)),a("last-category",r.categories.at(-1)),a("drawn",e.colors.light.page)}function q(e){return e===0?L.empty:D(L.magnitude,e)}var j=1024,A=null;function se(e){if(!A){A=new Uint32Array(j+1);let t=new Uint8ClampedArray(A.buffer);for(let r=0;r<=j;++r)t.set([...r===0?L.empty:D(L.magnitude,r/j),255],4*r)}return A[e===0?0:Math.max(1,Math.round(e*j))]}function _(e){return e===null?L.undefined:e<0?D(L.negative,-e):D(L.positive,e)}function G(e){return`rgb(${e.map(t=>Math.round(t)).join(" ")})`}function oe(e){let[t,r,o]=e.map(a=>{let s=a/255;return s<=.04045?s/12.92:((s+.055)/1.055)**2.4});return .2126*t+.7152*r+.0722*o}function le(e){let t=oe(e),r=o=>{let a=oe(o);return(Math.max(a,t)+.05)/(Math.min(a,t)+.05)};return r(L.text)>=r(L.page)?L.text:L.page}function S(e){let t=e.split("+").map(P);return`linear-gradient(90deg, ${t.map((r,o)=>`${r} ${100*o/t.length}% ${100*(o+1)/t.length}%`).join(", ")})`}function P(e){let t=ae.indexOf(e.split(/[+ ]/)[0]);return t<0?"var(--last-category)":`var(--category-${t})`}function n(e,t={},...r){let o=document.createElement(e);for(let[a,s]of Object.entries(t))a==="style"?o.style.cssText=s:o.setAttribute(a,s);return o.append(...r.filter(a=>a!=null)),o}function B(e){return n("div",{class:"scroll"},e)}function z(e,t){let r=n("canvas");return He(r,e,t),r}function He(e,t,r){let o=window.devicePixelRatio||1;e.width=Math.round(t*o),e.height=Math.round(r*o),e.style.width=`${t}px`,e.style.height=`${r}px`}function H(e){let t=e.getContext("2d");if(!t)throw new Error("this browser has no canvas");return t}function x(e,t=3){return e==null||!Number.isFinite(e)?"\u2013":e!==0&&Math.abs(e)<10**-t?e.toExponential(1):e.toFixed(t)}var V={theme:"light",prompt:0,order:"layer",head:null,task:0},de=[];function y(){return V}function f(e){let t=V;V={...V,...e};for(let r of de)r(V,t)}function v(e){de.push(e)}function Z(){let e=[0,.001,.25,.5,.75,1].map(t=>{let r=q(t),o=`background: ${G(r)}; color: ${G(le(r))}`;return n("span",{style:o},t===.001?">0":String(t))});return n("div",{class:"ramp","aria-label":"scale of weights"},...e)}function me(e){let{models:t,roles:r,tasks:o}=e.report,a=new Set(t.flatMap(l=>l.roles.flatMap(({role:d})=>d.split("+").filter(m=>m!=="")))),s=n("div",{class:"legend",id:"legend"}),i=()=>{let l=r.filter(d=>[...a].some(m=>m.split(" ")[0]===d)).map(d=>n("span",{},n("i",{class:"dot",style:`background: ${P(d)}`}),` ${d}`));[...a].some(d=>!r.includes(d.split(" ")[0]))&&l.push(n("span",{},n("i",{class:"dot",style:`background: ${P("other")}`})," other")),o.some(d=>d.heads.some(m=>m.length>0))&&l.push(n("span",{},n("i",{class:"dot ring"})," in the circuit")),s.replaceChildren(n("span",{class:"label"},"weight"),Z(),...l)};return v((l,d)=>{l.theme!==d.theme&&i()}),i(),s}function U(e,t,r){let o=new ImageData(t,e);for(let a=0;a<e;++a)for(let s=0;s<t;++s){let i=r(a,s);if(i===null)continue;let l=4*(a*t+s);o.data[l]=i[0],o.data[l+1]=i[1],o.data[l+2]=i[2],o.data[l+3]=255}return ee(o)}function ee(e){let t=document.createElement("canvas");return t.width=e.width,t.height=e.height,H(t).putImageData(e,0,0),t}function I(e,t){let r=H(e);r.imageSmoothingEnabled=t.width>e.width,r.imageSmoothingQuality="high",r.clearRect(0,0,e.width,e.height),r.drawImage(t,0,0,e.width,e.height)}function pe(e,t){let{width:r,height:o}=e,a=H(t).getImageData(0,0,t.width,t.height),s=new ImageData(r,o),i=(l,d,m)=>{let p=Math.floor(l*m/d);return[p,Math.max(p+1,Math.floor((l+1)*m/d))]};for(let l=0;l<o;++l){let[d,m]=i(l,o,t.height);for(let p=0;p<r;++p){let[c,h]=i(p,r,t.width);for(let u=0;u<4;++u){let b=0;for(let w=d;w<m;++w)for(let k=c;k<h;++k)b+=a.data[4*(w*t.width+k)+u];s.data[4*(l*r+p)+u]=b/((m-d)*(h-c))}}}H(e).putImageData(s,0,0)}var F=class{constructor(t,r,o,a,s,i,l){this.tokens=a;let d=s/a.length>=9;this.margin=d?78:8,this.side=s;let m=s+this.margin;this.canvas=z(m,m),this.canvas.dataset.map=o,this.picture=U(a.length,a.length,(p,c)=>c>p?null:i(p,c)),this.canvas.addEventListener("pointermove",p=>l(this.cellAt(p))),this.canvas.addEventListener("pointerleave",()=>l(null)),this.root=n("figure",{class:"large"},n("figcaption",{},n("b",{},t),` ${r}`),this.canvas),this.draw(null)}tokens;root;canvas;picture;margin;side;cellAt(t){let r=this.canvas.getBoundingClientRect(),o=this.tokens.length,a=Math.floor((t.clientX-r.left-this.margin)/this.side*o),s=Math.floor((t.clientY-r.top)/this.side*o);return a<0||s>=o||a>s?null:{query:s,key:a}}draw(t){let r=H(this.canvas),o=getComputedStyle(document.documentElement),a=o.getPropertyValue("--text"),s=o.getPropertyValue("--muted");r.setTransform(1,0,0,1,0,0),r.clearRect(0,0,this.canvas.width,this.canvas.height);let i=this.canvas.width/(this.side+this.margin);r.scale(i,i);let{side:l,margin:d}=this,m=this.tokens.length,p=l/m;r.imageSmoothingEnabled=!1,r.drawImage(this.picture,d,0,l,l),r.strokeStyle=s,r.lineWidth=1,r.beginPath(),r.moveTo(d,0),r.lineTo(d,l),r.lineTo(d+l,l),r.stroke(),d>8&&this.labels(r,t,a,s),t&&(r.strokeStyle=o.getPropertyValue("--category-0"),r.lineWidth=1.5,r.strokeRect(d+t.key*p,t.query*p,p,p))}labels(t,r,o,a){let{side:s,margin:i}=this,l=s/this.tokens.length;t.font=`${Math.min(12,l*.95)}px system-ui, sans-serif`,t.textBaseline="middle",t.textAlign="right";let d=m=>{let p=M(m);return p.length>11?`${p.slice(0,10)}\u2026`:p};this.tokens.forEach((m,p)=>{t.fillStyle=!r||r.query===p?o:a,t.fillText(d(m),i-5,(p+.5)*l),t.save(),t.translate(i+(p+.5)*l,s+5),t.rotate(-Math.PI/2),t.fillStyle=!r||r.key===p?o:a,t.fillText(d(m),0,0),t.restore()})}};function Pe(e,t){let r=0;for(let o=0;o<e.size;++o)for(let a=0;a<=o;++a)r=Math.max(r,Math.abs(t.at(o,a)-e.at(o,a)));return r}function N(e,t){let{head:r}=y(),o=e.report.models[0].roles.length;r!==null&&f({head:(r+t+o)%o})}function ze(e,t){if(e.report.roles.length===0)return null;let r=e.report.models.map(o=>{let{role:a,confidence:s}=o.roles[t],i=n("i",{class:"dot",style:`background: ${S(a)}`});return n("span",{},i,` ${o.name}: ${a} (${s.toFixed(2)})`)});return n("p",{class:"roleline"},...r)}function Ae(e,t){let{models:r,statistics:o}=e.report;if(o.length===0)return null;let a=o.map(i=>n("tr",{},n("th",{},i.label),...r.map(l=>n("td",{},x(l.statistics[t]?.[i.name]))))),s=n("tr",{},n("th",{}),...r.map(i=>n("th",{},i.name)));return n("table",{class:"numbers"},n("thead",{},s),n("tbody",{},...a))}function Ve(e,t){let r=(o,a,s)=>{let i=n("button",{type:"button","aria-label":o,title:o},a);return i.addEventListener("click",s),i};return n("header",{},n("h2",{id:"detail-title"},t),r("previous head (left arrow)","\u2190",()=>N(e,-1)),r("next head (right arrow)","\u2192",()=>N(e,1)),r("close (Escape)","\xD7",()=>f({head:null})))}function ce(e,t){let r=n("dialog",{id:"detail","aria-labelledby":"detail-title"}),{models:o}=e.report,a=0,s=async()=>{let i=++a,{head:l,prompt:d}=y();if(l===null)return r.close();let m=await e.maps(d);if(i!==a)return;let p=m.map(g=>g[l]),{tokens:c}=e.prompt(d),h=o.length===2?3:1,u=window.innerWidth>=900?h:1,b=Math.max(180,Math.min(520,(window.innerWidth-120)/u-90)),w=n("output",{class:"readout",id:"readout"}),k="Point at a cell: rows are queries, columns are keys.";w.textContent=k;let T=[],E=g=>{for(let $ of T)$.draw(g);if(!g)return void(w.textContent=k);let R=o.map(($,K)=>`${$.name} ${x(p[K].at(g.query,g.key),4)}`);w.textContent=`query ${g.query} \u201C${M(c[g.query])}\u201D \u2192 key ${g.key} \u201C${M(c[g.key])}\u201D: ${R.join(", ")}`};if(o.forEach((g,R)=>T.push(new F(g.name,"weights 0 to 1",`model-${R}`,c,b,($,K)=>q(p[R].at($,K)),E))),o.length===2){let g=Pe(p[0],p[1])||1;T.push(new F("difference",`${o[1].name} less ${o[0].name}, \xB1${x(g,2)}`,"difference",c,b,(R,$)=>_((p[1].at(R,$)-p[0].at(R,$))/g),E))}let Re=[Ve(e,`Head ${o[0].heads[l]}`),ze(e,l),n("div",{class:"row"},...T.map(g=>g.root)),w,Z(),Ae(e,l),t?.(l)];r.replaceChildren(...Re.filter(g=>g!=null)),r.open||r.showModal()};return v((i,l)=>{(i.head!==l.head||i.prompt!==l.prompt||i.theme!==l.theme)&&s()}),r.addEventListener("close",()=>f({head:null})),r.addEventListener("click",i=>{i.target===r&&f({head:null})}),document.addEventListener("keydown",i=>{y().head!==null&&(i.key==="ArrowLeft"&&N(e,-1),i.key==="ArrowRight"&&N(e,1))}),r}var ue=96,Ie=20;function he(e){let t=new ImageData(e.size,e.size),r=new Uint32Array(t.data.buffer);for(let o=0;o<e.size;++o)for(let a=0;a<=o;++a)r[o*e.size+a]=se(e.at(o,a));return ee(t)}function Oe(e,t){let r=e.roles.map((o,a)=>a);return t==="role"&&r.sort((o,a)=>e.roles[o].role.localeCompare(e.roles[a].role)),r}function je(e,t,r){return(e.report.tasks[y().task]?.heads[t]?.indexOf(r)??-1)+1}function De(e,t){e.classList.toggle("member",t>0),e.querySelector(".rank").textContent=t>0?String(t):""}function qe(e,t,r,o,a){let{role:s,confidence:i}=e.roles[r],l=e.heads[r],d=z(ue,ue);I(d,he(o));let m=n("button",{class:"head",type:"button","data-model":String(t),"data-head":l,"aria-label":`${l} of ${e.name}${s&&`: ${s}`}`,title:s?`${l} \u2013 ${s} (${i.toFixed(2)})`:l,style:`--role: ${P(s)}; --stripe: ${S(s)}`},n("span",{class:"map"},d),n("span",{class:"label"},l),n("span",{class:"rank"}));return m.addEventListener("click",p=>a(r,p)),m}function ge(e,t=r=>f({head:r})){let r=e.report.models.map(m=>{let p=n("div",{class:"maps"}),c=m.facts.flatMap((u,b)=>[b>0?" \xB7 ":null,n("span",{},u.join(" "))]);return{panel:n("section",{class:"panel"},n("div",{class:"title"},n("h2",{},m.name),n("p",{class:"facts"},...c)),p),maps:p}}),o=0,a=null,s=async()=>{let m=++o,{prompt:p,order:c}=y(),h=await e.maps(p);if(m===o){if(i=h,a===c)return l();a=c,e.report.models.forEach((u,b)=>{let w=Oe(u,c),k=O(u),T=c==="layer"&&k<=Ie;r[b].maps.classList.toggle("by-layer",T),r[b].maps.style.setProperty("--heads",String(k)),r[b].maps.style.setProperty("--layers",String(u.layers.length)),r[b].maps.replaceChildren(...w.map(E=>qe(u,b,E,h[b][E],t)))}),d()}},i=[],l=(m=I)=>i.forEach((p,c)=>r[c].maps.querySelectorAll(".head").forEach(h=>{let u=e.report.models[c].heads.indexOf(h.dataset.head);m(h.querySelector("canvas"),he(p[u]))})),d=()=>r.forEach(({maps:m},p)=>m.querySelectorAll(".head").forEach(c=>De(c,je(e,p,c.dataset.head))));return v((m,p)=>{(m.prompt!==p.prompt||m.order!==p.order)&&s(),m.theme!==p.theme&&l(pe),m.task!==p.task&&d()}),s(),n("div",{class:"grid",id:"grid"},...r.map(({panel:m})=>m))}var fe=400;function _e(e,t,r){let o=t.matrix.length,a=r?t.order:t.order.map((m,p)=>p),s=z(fe,fe),i=(m,p)=>t.matrix[a[m]][a[p]]??null;I(s,U(o,o,(m,p)=>_(i(m,p))));let l=n("output",{class:"readout"}),d=m=>{let p=s.getBoundingClientRect(),c=(h,u)=>Math.min(o-1,Math.max(0,Math.floor(h/u*o)));return[c(m.clientY-p.top,p.height),c(m.clientX-p.left,p.width)]};return s.addEventListener("pointermove",m=>{let[p,c]=d(m),h=[a[p],a[c]].map(u=>e.heads[u]);l.textContent=`${h.join(" and ")}: ${x(i(p,c),3)}`}),s.addEventListener("pointerleave",()=>l.textContent=""),s.addEventListener("click",m=>f({head:a[d(m)[0]]})),n("figure",{},n("figcaption",{},e.name),s,l)}function be(e){let{models:t,pairs:r}=e.report,o=r[0]?.map(d=>d.measure)??[];if(o.length===0)return null;let a=n("div",{class:"row"}),s=n("select",{"aria-label":"correlation"});s.append(...o.map((d,m)=>n("option",{value:String(m)},d)));let i=n("input",{type:"checkbox",id:"clustered",checked:""}),l=()=>a.replaceChildren(...t.map((d,m)=>_e(d,r[m][Number(s.value)],i.checked)));return s.addEventListener("change",l),i.addEventListener("change",l),v((d,m)=>{d.theme!==m.theme&&l()}),l(),n("section",{id:"pairs",class:"plain"},n("h2",{},"Head pairs"),n("p",{class:"facts"},s," ",i,n("label",{for:"clustered"}," ordered by clustering; "),"blue is -1, orange 1; grey is undefined"),a)}function Be(e){let t=new Map;for(let{role:r}of e.roles)t.set(r,(t.get(r)??0)+1);return t}function Ue(e){let t=e.map(Be),r=[...new Set(t.flatMap(i=>[...i.keys()]))],o=i=>t.reduce((l,d)=>l+(d.get(i)??0),0);r.sort((i,l)=>o(l)-o(i)||i.localeCompare(l));let a=r.map(i=>{let l=n("i",{class:"dot",style:`background: ${S(i)}`}),d=t.map(m=>n("td",{},String(m.get(i)??0)));return n("tr",{},n("th",{},l,` ${i}`),...d)}),s=n("tr",{},n("th",{},"role"),...e.map(i=>n("th",{},i.name)));return n("table",{},n("thead",{},s),n("tbody",{},...a))}function Fe(e){let t=O(e),r=e.layers.map((o,a)=>{let s=Array.from({length:t},(i,l)=>{let d=a*t+l,{role:m,confidence:p}=e.roles[d],c=`${e.heads[d]} \u2013 ${m} (${p.toFixed(2)})`,h=n("button",{type:"button",title:c,"aria-label":`${c}, ${e.name}`,style:`background: ${S(m)}; opacity: ${.35+.65*p}`});return h.addEventListener("click",()=>f({head:d})),n("td",{},h)});return n("tr",{},n("th",{},o),...s)});return n("figure",{},n("figcaption",{},e.name),n("table",{class:"layout"},n("tbody",{},...r)))}function ve(e){let{models:t}=e.report;return n("section",{id:"roles",class:"plain"},n("h2",{},"Head roles"),n("div",{class:"row"},Ue(t),...t.map(Fe)))}function Ne(e,t){return e==null?x(e):t==="%"?`${x(100*e,2)} %`:x(e)}function te(e,t){if(e==null)return x(e);let r=t==="%"?x(100*e,2):x(e);return e>0?`+${r}`:r}function We(e){return e.p!=null&&e.least_p!=null&&e.p<=e.least_p}function Ke(e){let t=e.intervals.flatMap(s=>s??[]),r=Math.max(...[...e.values,...t].map(s=>Math.abs(s)),1e-12),o=s=>100*Math.abs(s)/r,a=e.values.map((s,i)=>{let l=e.intervals[i],d=l?Math.min(o(l[0]),o(l[1])):0,m=l?Math.max(o(l[0]),o(l[1])):0;return n("div",{class:"measure"},n("i",{class:`bar model-${i}`,style:`width: ${o(s)}%`}),l?n("i",{class:"whisker",style:`left: ${d}%; width: ${m-d}%`}):null)});return n("td",{class:"bars"},...a)}function xe(e){let{models:t,statistics:r}=e.report;if(r.length===0)return null;let o=r.some(i=>i.change!=null),a=[n("th",{},"statistic"),...t.map(i=>n("th",{},i.name)),n("th",{},""),...o?[n("th",{},"change"),n("th",{},"95 % interval"),n("th",{},"p")]:[]],s=r.map(i=>n("tr",{},n("th",{},i.label),...i.values.map(l=>n("td",{},Ne(l,i.unit))),Ke(i),...o?[n("td",{},te(i.change,i.unit)+(i.unit==="%"?" points":"")),n("td",{},`${te(i.low,i.unit)} to ${te(i.high,i.unit)}`),n("td",{},`${We(i)?"\u2264 ":""}${x(i.p,4)}`)]:[]));return n("section",{id:"statistics",class:"plain"},n("h2",{},"Statistics"),B(n("table",{class:"statistics"},n("thead",{},n("tr",{},...a)),n("tbody",{},...s))),o?n("p",{class:"facts"},"Means over heads. Whiskers: bootstrap over prompts. Interval: paired bootstrap; p: paired permutation test, ","\u2264 where so many prompts cannot give less."):null)}function Xe(e){return n("div",{class:"tile"},n("b",{},e.value),n("span",{},e.label))}function ye(e){let{story:t}=e.report;return t.line?n("section",{id:"story"},n("p",{},t.line),n("div",{class:"tiles"},...t.numbers.map(Xe))):null}function Ye(e){return e.rows.length===0?null:B(n("table",{},n("thead",{},n("tr",{},...e.columns.map(t=>n("th",{},t)))),n("tbody",{},...e.rows.map(([t,...r])=>n("tr",{},n("th",{},t),...r.map(o=>n("td",{},o)))))))}function Je(e){let t=e.figures.map(r=>{let o=(s,i)=>{let l=n("img",{alt:r.title,class:s});return J(i).then(d=>{l.src=`data:image/svg+xml,${encodeURIComponent(new TextDecoder().decode(d))}`}),l},a=r.dark_svg===null?[o("both",r.svg)]:[o("light",r.svg),o("dark",r.dark_svg)];return n("figure",{class:"drawn"},n("figcaption",{},n("b",{},r.title),` ${r.caption}`),...a)});return n("article",{class:"task"},n("h3",{},e.name),n("p",{class:"facts"},[e.description,...e.facts.map(([r,o])=>`${r}: ${o}`)].join(" \xB7 ")),Ye(e),n("div",{class:"row"},...t))}function we(e){let{tasks:t}=e.report;return t.length===0?null:n("section",{id:"tasks",class:"plain"},n("h2",{},"Tasks"),...t.map(Je))}var ke=null,Le=!1,Me=matchMedia("(prefers-color-scheme: dark)");function W(){f({theme:Le?"light":ke??(Me.matches?"dark":"light")})}function Ee(){let e=n("button",{type:"button",id:"theme",title:"light or dark","aria-label":"light or dark"},"\u25D0");return e.addEventListener("click",()=>{ke=y().theme==="dark"?"light":"dark",W()}),e}function Te(e){v(r=>ie(e.report,r.theme));let t=r=>{Le=r,W()};addEventListener("beforeprint",()=>t(!0)),addEventListener("afterprint",()=>t(!1)),Me.addEventListener("change",W),W()}var Qe=3,Ge=.05;function Ze(e,t){return e.map((o,a)=>{let s={head:a,key:0,weight:0};for(let i=0;i<=t;++i)o.at(t,i)>s.weight&&(s={head:a,key:i,weight:o.at(t,i)});return s}).filter(o=>o.weight>=Ge).sort((o,a)=>a.weight-o.weight)}function $e(e,t){let r=n("div",{class:"tokens","aria-label":"tokens of the prompt"}),o=n("output",{class:"readout",id:"token-readout"}),a="Point at a token: its row and column are shown in every head.",s=0,i=async d=>{let m=++s,{prompt:p}=y(),{tokens:c}=e.prompt(p);if(t.classList.toggle("pointed",d!==null),d===null)return void(o.textContent=a);t.style.setProperty("--tokens",String(c.length)),t.style.setProperty("--token",String(d));let h=await e.maps(p);if(m!==s)return;let u=e.report.models.map((b,w)=>{let k=Ze(h[w],d),T=k.slice(0,Qe).map(E=>`${b.heads[E.head]} \u2192 ${M(c[E.key])} ${E.weight.toFixed(2)}`);return`${b.name} (${k.length} heads): ${T.join(", ")||"nothing"}`});o.title=o.textContent=`\u201C${M(c[d])}\u201D looks at \u2013 ${u.join(" \xB7 ")}`},l=()=>{let{tokens:d}=e.prompt(y().prompt);r.replaceChildren(...d.map((m,p)=>{let c=n("button",{type:"button",class:"token","data-token":String(p)},M(m));return c.addEventListener("pointerenter",()=>{i(p)}),c.addEventListener("pointerleave",()=>{i(null)}),c.addEventListener("focus",()=>{i(p)}),c.addEventListener("blur",()=>{i(null)}),c})),i(null)};return v((d,m)=>{d.prompt!==m.prompt&&l()}),l(),n("div",{class:"prompt"},r,o)}function et(e){let t=n("select",{id:"prompt","aria-label":"prompt"});return e.report.prompts.forEach((r,o)=>{let a=r.text.length>90?`${r.text.slice(0,88)}\u2026`:r.text;t.append(n("option",{value:String(o)},M(a).replace(/\u00b7/g," ")))}),t.addEventListener("change",()=>f({prompt:Number(t.value)})),v(r=>t.value=String(r.prompt)),n("label",{},"prompt ",t)}function tt(){let e=n("select",{id:"order","aria-label":"order of heads"}),t=["layer","role"];for(let r of t)e.append(n("option",{value:r},`by ${r}`));return e.addEventListener("change",()=>f({order:e.value})),n("label",{},"heads ",e)}function rt(e){let{tasks:t}=e.report;if(t.every(o=>o.heads.every(a=>a.length===0)))return null;let r=n("select",{id:"circuit","aria-label":"circuit that is marked"});return t.forEach((o,a)=>r.append(n("option",{value:String(a)},o.name))),r.append(n("option",{value:"-1"},"none")),r.addEventListener("change",()=>f({task:Number(r.value)})),n("label",{},"circuit of ",r)}function nt(e){let t=e.report.made.flatMap(([r,o])=>[n("dt",{},r),n("dd",{},n("code",{},o))]);return n("section",{id:"made",class:"plain"},n("h2",{},"How this was made"),n("dl",{},...t))}function ot(e){let t=e.report.models[0],r=()=>{let o=t.heads.indexOf(location.hash.slice(1));o>=0&&f({head:o})};v((o,a)=>{if(o.head===a.head)return;let s=o.head===null?"":`#${t.heads[o.head]}`;history.replaceState(null,"",location.pathname+location.search+s)}),addEventListener("hashchange",r),r()}function at(e){let{report:t}=e;document.title=t.title,Te(e);let r=[we(e),ve(e),xe(e),be(e),nt(e)],o=[n("a",{href:"#grid"},"maps")];for(let i of r)i&&o.push(n("a",{href:`#${i.id}`},i.querySelector("h2").textContent.toLowerCase()));let a=n("header",{class:"top"},n("h1",{},t.title),n("nav",{},...o),n("div",{class:"choices"},et(e),tt(),rt(e),Ee())),s=ge(e);document.body.replaceChildren(a,n("main",{},ye(e),n("div",{class:"above"},me(e),$e(e,s)),s,...r.filter(i=>i!==null)),ce(e)),ot(e),document.body.dataset.ready=String(y().prompt>=0)}document.head.append(n("style",{},re));try{at(ne())}catch(e){document.body.replaceChildren(n("p",{class:"failure"},e instanceof Error?e.message:String(e)))}})();
