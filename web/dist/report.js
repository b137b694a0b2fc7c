"use strict";(()=>{var ae=`:root {
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
`;var K=class{constructor(e,t,n){this.size=e;this.cells=t;this.start=n}size;cells;start;at(e,t){return t>e?0:this.cells[this.start+e*(e+1)/2+t]/65535}stored(){return this.cells.subarray(this.start,this.start+this.size*(this.size+1)/2)}};async function Y(r){let e=atob(r),t=new Uint8Array(e.length);for(let a=0;a<e.length;++a)t[a]=e.charCodeAt(a);let n=new Blob([t]).stream().pipeThrough(new DecompressionStream("deflate"));return new Response(n).arrayBuffer()}async function He(r,e,t){let n=new DataView(await Y(r)),a=new Uint16Array(n.byteLength/2);for(let s=0;s<a.length;++s)a[s]=n.getUint16(2*s,!0);return Se(a,e,t)}function Se(r,e,t){let n=t*(t+1)/2;if(r.length!==e*n)throw new Error(`there are ${r.length} weights where ${e*n} were expected`);return Array.from({length:e},(a,s)=>new K(t,r,s*n))}var X=class{constructor(e){this.report=e}report;unpacked=new Map;prompt(e){return this.report.prompts[e]}maps(e){let t=this.unpacked.get(e);if(!t){let{tokens:n,maps:a}=this.prompt(e);t=Promise.all(this.report.models.map((s,i)=>He(a[i],s.heads.length,n.length))),this.unpacked.set(e,t)}return t}};function ie(){let r=document.getElementById("filigree-data");if(!r?.textContent)throw new Error("this page holds no report");let e=JSON.parse(r.textContent);if(e.format!=="filigree-report-3")throw new Error(`this viewer does not know the format '${e.format}'`);return new X(e)}function I(r){return r.heads.length/r.layers.length}function w(r){return r.replace(/ /g,"\xB7").replace(/\n/g,"\u23CE").replace(/\t/g,"\u21E5")||"\u2205"}function R(r){let e=parseInt(r.slice(1),16);return[e>>16,e>>8&255,e&255]}function U(r,e){let t=Math.min(Math.max(e,0),1)*(r.length-1),n=Math.min(Math.floor(t),r.length-2),a=r[n],s=r[n+1],i=t-n;return[a[0]+i*(s[0]-a[0]),a[1]+i*(s[1]-a[1]),a[2]+i*(s[2]-a[2])]}var J=class{empty;undefined;text;page;magnitude;negative;positive;constructor(e){this.empty=R(e.empty),this.undefined=R(e.undefined),this.text=R(e.text),this.page=R(e.page),this.magnitude=e.magnitude.map(R),this.negative=[this.empty,...e.negative.map(R)],this.positive=[this.empty,...e.positive.map(R)]}},y,le=[];function de(r,e){let t=r.colors[e];y=new J(t),S=null,le=r.roles;let n=document.documentElement;n.dataset.theme=e;let a=(s,i)=>n.style.setProperty(`--${s}`,i);a("page",t.page),a("panel",t.panel),a("panel-border",t.panel_border),a("text",t.text),a("muted",t.muted),a("grid",t.grid),a("frame",t.frame),a("empty",t.empty),t.categories.forEach((s,i)=>a(`category-${i}`,s)),a("last-category",t.categories.at(-1)),a("drawn",r.colors.light.page)}function D(r){return r===0?y.empty:U(y.magnitude,r)}var S=null;function Q(){if(!S){S=new Uint32Array(1025);let r=new Uint8ClampedArray(S.buffer);for(let e=0;e<=1024;++e)r.set([...e===0?y.empty:U(y.magnitude,e/1024),255],4*e)}return S}function j(r){return r===null?y.undefined:r<0?U(y.negative,-r):U(y.positive,r)}function G(r){return`rgb(${r.map(e=>Math.round(e)).join(" ")})`}function se(r){let[e,t,n]=r.map(a=>{let s=a/255;return s<=.04045?s/12.92:((s+.055)/1.055)**2.4});return .2126*e+.7152*t+.0722*n}function me(r){let e=se(r),t=n=>{let a=se(n);return(Math.max(a,e)+.05)/(Math.min(a,e)+.05)};return t(y.text)>=t(y.page)?y.text:y.page}function T(r){let e=r.split("+").map(C);return`linear-gradient(90deg, ${e.map((t,n)=>`${t} ${100*n/e.length}% ${100*(n+1)/e.length}%`).join(", ")})`}function C(r){let e=le.indexOf(r.split(/[+ ]/)[0]);return e<0?"var(--last-category)":`var(--category-${e})`}function o(r,e={},...t){let n=document.createElement(r);for(let[a,s]of Object.entries(e))a==="style"?n.style.cssText=s:n.setAttribute(a,s);return n.append(...t.filter(a=>a!=null)),n}function O(r){return o("div",{class:"scroll"},r)}function _(r,e){let t=o("canvas");return Ae(t,r,e),t}function Ae(r,e,t){let n=window.devicePixelRatio||1;r.width=Math.round(e*n),r.height=Math.round(t*n),r.style.width=`${e}px`,r.style.height=`${t}px`}function $(r){let e=r.getContext("2d");if(!e)throw new Error("this browser has no canvas");return e}function v(r,e=3){return r==null||!Number.isFinite(r)?"\u2013":r!==0&&Math.abs(r)<10**-e?r.toExponential(1):r.toFixed(e)}function B(r,e,t){let n=new ImageData(e,r);for(let a=0;a<r;++a)for(let s=0;s<e;++s){let i=t(a,s);if(i===null)continue;let l=4*(a*e+s);n.data[l]=i[0],n.data[l+1]=i[1],n.data[l+2]=i[2],n.data[l+3]=255}return Pe(n)}function Pe(r){let e=document.createElement("canvas");return e.width=r.width,e.height=r.height,$(e).putImageData(r,0,0),e}function pe(r,e){let t=$(r);t.imageSmoothingEnabled=e.width>r.width,t.imageSmoothingQuality="high",t.clearRect(0,0,r.width,r.height),t.drawImage(e,0,0,r.width,r.height)}var Z=30,A=class{constructor(e){this.options=e;let{tokens:t,side:n,sums:a}=e,s=n/t.length>=9,i=a?Z:0;this.left=s?78:8,this.top=i,this.width=this.left+n+i,this.canvas=_(this.width,this.top+n+this.left),this.canvas.dataset.map=e.name,this.canvas.setAttribute("role","img"),this.canvas.setAttribute("aria-label",`${e.title}, ${e.subtitle}`),this.picture=B(t.length,t.length,(l,d)=>d>l?null:e.colour(l,d)),this.canvas.addEventListener("pointermove",l=>e.pointed(this.cellAt(l))),this.canvas.addEventListener("pointerleave",()=>e.pointed(null)),this.canvas.addEventListener("click",l=>{let d=this.cellAt(l);d&&e.clicked?.(d)}),this.root=o("figure",{class:"large"},o("figcaption",{},o("b",{},e.title),` ${e.subtitle}`),this.canvas),this.draw(null)}options;root;canvas;picture;left;top;width;cellAt(e){let t=this.canvas.getBoundingClientRect(),{tokens:n,side:a}=this.options,s=this.width/t.width,i=m=>Math.floor(m/a*n.length),l=i((e.clientX-t.left)*s-this.left),d=i((e.clientY-t.top)*s-this.top);return l<0||d<0||d>=n.length||l>d?null:{query:d,key:l}}draw(e){let t=$(this.canvas),n=getComputedStyle(document.documentElement),a=n.getPropertyValue("--text"),s=n.getPropertyValue("--muted");t.setTransform(1,0,0,1,0,0),t.clearRect(0,0,this.canvas.width,this.canvas.height);let i=this.canvas.width/this.width;t.scale(i,i),t.translate(this.left,this.top);let{side:l,tokens:d,sums:m}=this.options,p=l/d.length;t.imageSmoothingEnabled=!1,t.drawImage(this.picture,0,0,l,l),t.strokeStyle=s,t.lineWidth=1,t.beginPath(),t.moveTo(0,0),t.lineTo(0,l),t.lineTo(l,l),t.stroke(),m&&this.bars(t,m,n.getPropertyValue("--category-1")),this.left>8&&this.labels(t,e,a,s),this.crosses(t,n.getPropertyValue("--category-0")),e&&(t.strokeStyle=n.getPropertyValue("--category-0"),t.lineWidth=1.5,t.strokeRect(e.key*p,e.query*p,p,p))}bars(e,t,n){let{side:a,tokens:s}=this.options,i=a/s.length,l=Math.max(1,i-1);e.fillStyle=n;let d=Math.max(1,...t.columns);t.rows.forEach((m,p)=>e.fillRect(a+2,p*i,Math.min(1,m)*(Z-2),l)),t.columns.forEach((m,p)=>{let c=m/d*(Z-2);e.fillRect(p*i,-2-c,l,c)})}crosses(e,t){let{side:n,tokens:a,crossed:s}=this.options;if(!s)return;let i=n/a.length;e.strokeStyle=t,e.lineWidth=2,e.beginPath();for(let l=0;l<a.length;++l)for(let d=0;d<=l;++d)s(l,d)&&(e.moveTo(d*i,l*i),e.lineTo((d+1)*i,(l+1)*i),e.moveTo((d+1)*i,l*i),e.lineTo(d*i,(l+1)*i));e.stroke()}labels(e,t,n,a){let{side:s,tokens:i}=this.options,l=s/i.length;e.font=`${Math.min(12,l*.95)}px system-ui, sans-serif`,e.textBaseline="middle",e.textAlign="right";let d=m=>{let p=w(m);return p.length>11?`${p.slice(0,10)}\u2026`:p};i.forEach((m,p)=>{e.fillStyle=!t||t.query===p?n:a,e.fillText(d(m),-5,(p+.5)*l),e.save(),e.translate((p+.5)*l,s+5),e.rotate(-Math.PI/2),e.fillStyle=!t||t.key===p?n:a,e.fillText(d(m),0,0),e.restore()})}};var P={theme:"light",prompt:0,order:"layer",head:null,task:0,marks:0},ce=[];function f(){return P}function h(r){let e=P;P={...P,...r};for(let t of ce)t(P,e)}function b(r){ce.push(r)}function ee(){let r=[0,.001,.25,.5,.75,1].map(e=>{let t=D(e),n=`background: ${G(t)}; color: ${G(me(t))}`;return o("span",{style:n},e===.001?">0":String(e))});return o("div",{class:"ramp","aria-label":"scale of weights"},...r)}function ue(r){let e=o("div",{class:"legend",id:"legend"}),t=()=>{let{models:n,roles:a,tasks:s}=r.report,i=new Set(n.flatMap(d=>d.roles.flatMap(({role:m})=>m.split("+").filter(p=>p!=="")))),l=a.filter(d=>[...i].some(m=>m.split(" ")[0]===d)).map(d=>o("span",{},o("i",{class:"dot",style:`background: ${C(d)}`}),` ${d}`));[...i].some(d=>!a.includes(d.split(" ")[0]))&&l.push(o("span",{},o("i",{class:"dot",style:`background: ${C("other")}`})," other")),s.some(d=>d.heads.some(m=>m.length>0))&&l.push(o("span",{},o("i",{class:"dot ring"})," in the circuit")),e.replaceChildren(o("span",{class:"label"},"weight"),ee(),...l)};return b((n,a)=>{(n.theme!==a.theme||n.marks!==a.marks)&&t()}),t(),e}function ze(r,e){let t=0;for(let n=0;n<r.size;++n)for(let a=0;a<=n;++a)t=Math.max(t,Math.abs(e.at(n,a)-r.at(n,a)));return t}function q(r,e){let{head:t}=f(),n=r.report.models[0].roles.length;t!==null&&h({head:(t+e+n)%n})}function Ve(r,e){if(r.report.roles.length===0)return null;let t=r.report.models.map(n=>{let{role:a,confidence:s}=n.roles[e],i=o("i",{class:"dot",style:`background: ${T(a)}`});return o("span",{},i,` ${n.name}: ${a} (${s.toFixed(2)})`)});return o("p",{class:"roleline"},...t)}function Ie(r,e){let{models:t,statistics:n}=r.report;if(n.length===0)return null;let a=n.map(i=>o("tr",{},o("th",{},i.label),...t.map(l=>o("td",{},v(l.statistics[e]?.[i.name]))))),s=o("tr",{},o("th",{}),...t.map(i=>o("th",{},i.name)));return o("table",{class:"numbers"},o("thead",{},s),o("tbody",{},...a))}function Ue(r,e){let t=(n,a,s)=>{let i=o("button",{type:"button","aria-label":n,title:n},a);return i.addEventListener("click",s),i};return o("header",{},o("h2",{id:"detail-title"},e),t("previous head (left arrow)","\u2190",()=>q(r,-1)),t("next head (right arrow)","\u2192",()=>q(r,1)),t("close (Escape)","\xD7",()=>h({head:null})))}function De(r,e){r.addEventListener("close",()=>h({head:null})),r.addEventListener("click",t=>{t.target===r&&h({head:null})}),document.addEventListener("keydown",t=>{f().head!==null&&(t.key==="ArrowLeft"&&q(e,-1),t.key==="ArrowRight"&&q(e,1))})}function he(r){let e=o("dialog",{id:"detail","aria-labelledby":"detail-title"}),{models:t}=r.report,n=0,a=async()=>{let s=++n,{head:i,prompt:l}=f();if(i===null)return e.close();let d=await r.maps(l);if(s!==n)return;let m=d.map(u=>u[i]),{tokens:p}=r.prompt(l),c=t.length===2?3:1,g=window.innerWidth>=900?c:1,x=Math.max(180,Math.min(520,(window.innerWidth-120)/g-90)),M=o("output",{class:"readout",id:"readout"}),z="Point at a cell: rows are queries, columns are keys.";M.textContent=z;let L=[],V=u=>{for(let k of L)k.draw(u);if(!u)return void(M.textContent=z);let E=t.map((k,F)=>`${k.name} ${v(m[F].at(u.query,u.key),4)}`);M.textContent=`query ${u.query} \u201C${w(p[u.query])}\u201D \u2192 key ${u.key} \u201C${w(p[u.key])}\u201D: ${E.join(", ")}`};if(t.forEach((u,E)=>L.push(new A({title:u.name,subtitle:"weights 0 to 1",name:`model-${E}`,tokens:p,side:x,pointed:V,colour:(k,F)=>D(m[E].at(k,F))}))),t.length===2){let u=ze(m[0],m[1])||1;L.push(new A({title:"difference",subtitle:`${t[1].name} less ${t[0].name}, \xB1${v(u,2)}`,name:"difference",tokens:p,side:x,pointed:V,colour:(E,k)=>j((m[1].at(E,k)-m[0].at(E,k))/u)}))}let H=[Ue(r,`Head ${t[0].heads[i]}`),Ve(r,i),o("div",{class:"row"},...L.map(u=>u.root)),M,ee(),Ie(r,i)];e.replaceChildren(...H.filter(u=>u!==null)),e.open||e.showModal()};return b((s,i)=>{(s.head!==i.head||s.prompt!==i.prompt||s.theme!==i.theme)&&a()}),De(e,r),e}var N=class{canvases;constructor(e){this.canvases=e.map(t=>t.appendChild(o("canvas")))}paint(e,t){let n=new te(t[0].size);for(let a of e)n.draw(t[a],this.canvases[a])}},je=96,te=class{constructor(e){this.size=e;let t=Math.round(je*(window.devicePixelRatio||1));this.enlarged=e<=t?Math.floor(t/e):0,this.side=this.enlarged>0?e*this.enlarged:t,this.image=new ImageData(this.side,this.side),this.pixels=new Uint32Array(this.image.data.buffer)}size;image;pixels;enlarged;side;draw(e,t){this.enlarged>0?this.enlarge(e.stored()):this.reduce(e.stored()),t.width!==this.side&&(t.width=t.height=this.side),$(t).putImageData(this.image,0,0)}enlarge(e){let{pixels:t,side:n,size:a,enlarged:s}=this,i=Q();for(let l=0,d=0;l<a;++l){let m=l*s*n;for(let p=0,c=m;p<=l;++p,++d){let g=i[e[d]+63>>6];for(let x=0;x<s;++x,++c)t[c]=g}for(let p=1;p<s;++p)t.copyWithin(m+p*n,m,m+(l+1)*s)}}reduce(e){let{pixels:t,side:n,size:a}=this,s=Q(),i=new Uint16Array(n*n),l=Uint16Array.from({length:a},(d,m)=>Math.floor(m*n/a));for(let d=0,m=0;d<a;++d){let p=l[d]*n;for(let c=0;c<=d;++c,++m){let g=p+l[c];e[m]>i[g]&&(i[g]=e[m])}}for(let d=0;d<n;++d)for(let m=0;m<=d;++m)t[d*n+m]=s[i[d*n+m]+63>>6]}};var Oe=20;function ne(r){return r.heads.map((e,t)=>t)}function _e(r){return ne(r).sort((e,t)=>r.roles[e].role.localeCompare(r.roles[t].role))}function Be(r,e,t){return(r.report.tasks[f().task]?.heads[e]?.indexOf(t)??-1)+1}function ge(r,e){return r.length===e.length&&r.every((t,n)=>t===e[n])}var re=class{constructor(e,t,n,a){this.loaded=e;this.index=t;let{model:s}=this,i=s.heads.map(()=>o("span",{class:"map"}));this.buttons=s.heads.map((d,m)=>{let p=o("button",{class:"head",type:"button","data-model":String(t),"data-head":d},i[m],o("span",{class:"label"},d),o("span",{class:"rank"}));return p.addEventListener("click",c=>n(m,c)),p});let l=s.facts.flatMap((d,m)=>[m>0?" \xB7 ":null,o("span",{},d.join(" "))]);this.root=o("section",{class:"panel","aria-label":`heads of ${s.name}`},o("div",{class:"title"},o("h2",{},s.name),o("p",{class:"facts"},...l)),this.maps),this.maps.addEventListener("keydown",d=>this.move(d)),this.painter=a(i,this.maps),this.mark()}loaded;index;root;maps=o("div",{class:"maps"});buttons;painter;shown=[];get model(){return this.loaded.report.models[this.index]}arrange(e){if(ge(e,this.shown))return;this.shown=e;let{model:t}=this,n=I(t),a=n<=Oe&&ge(e,ne(t));this.maps.classList.toggle("by-layer",a),this.maps.style.setProperty("--heads",String(n)),this.maps.style.setProperty("--layers",String(t.layers.length));for(let s of this.buttons)s.remove();this.maps.append(...e.map(s=>this.buttons[s]));for(let s of this.buttons)s.tabIndex=-1;e.length>0&&(this.buttons[e[0]].tabIndex=0)}move(e){let t=this.shown.map(l=>this.buttons[l]),n=t.indexOf(e.target.closest(".head")),a=t.filter(({offsetTop:l})=>l===t[0].offsetTop).length,s={ArrowLeft:-1,ArrowRight:1,ArrowUp:-a,ArrowDown:a,Home:-n,End:t.length-1-n}[e.key],i=s===void 0?void 0:t[n+s];n<0||!i||(e.preventDefault(),t[n].tabIndex=-1,i.tabIndex=0,i.focus())}paint(e){this.painter.paint(this.shown,e)}mark(){let{model:e}=this;this.buttons.forEach((t,n)=>{let a=e.heads[n],{role:s,confidence:i}=e.roles[n];t.setAttribute("aria-label",`${a} of ${e.name}${s&&`: ${s}`}`),t.title=s?`${a} \u2013 ${s} (${i.toFixed(2)})`:a,t.style.cssText=s?`--role: ${C(s)}; --stripe: ${T(s)}`:"--role: transparent; --stripe: linear-gradient(transparent, transparent)";let l=Be(this.loaded,this.index,a);t.classList.toggle("member",l>0),t.querySelector(".rank").textContent=l>0?String(l):""})}};function fe(r,e=a=>h({head:a}),t=a=>(f().order==="role"?_e:ne)(r.report.models[a]),n=a=>new N(a)){let a=r.report.models.map((m,p)=>new re(r,p,e,n)),s=[],i=0,l=()=>{s.length!==0&&(a.forEach((m,p)=>m.arrange(t(p))),a.forEach((m,p)=>m.paint(s[p])))},d=async()=>{let m=++i,p=await r.maps(f().prompt);m===i&&(s=p,l())};return b((m,p)=>{(m.task!==p.task||m.marks!==p.marks)&&a.forEach(c=>c.mark()),m.prompt!==p.prompt?d():(m.order!==p.order||m.marks!==p.marks||m.theme!==p.theme)&&l()}),d(),o("div",{class:"grid",id:"grid"},...a.map(({root:m})=>m))}var be=400;function qe(r,e,t){let n=e.matrix.length,a=t?e.order:e.order.map((m,p)=>p),s=_(be,be),i=(m,p)=>e.matrix[a[m]][a[p]]??null;pe(s,B(n,n,(m,p)=>j(i(m,p))));let l=o("output",{class:"readout"}),d=m=>{let p=s.getBoundingClientRect(),c=(g,x)=>Math.min(n-1,Math.max(0,Math.floor(g/x*n)));return[c(m.clientY-p.top,p.height),c(m.clientX-p.left,p.width)]};return s.addEventListener("pointermove",m=>{let[p,c]=d(m),g=[a[p],a[c]].map(x=>r.heads[x]);l.textContent=`${g.join(" and ")}: ${v(i(p,c),3)}`}),s.addEventListener("pointerleave",()=>l.textContent=""),s.addEventListener("click",m=>h({head:a[d(m)[0]]})),o("figure",{},o("figcaption",{},r.name),s,l)}function ve(r){let{models:e,pairs:t}=r.report,n=t[0]?.map(d=>d.measure)??[];if(n.length===0)return null;let a=o("div",{class:"row"}),s=o("select",{"aria-label":"correlation"});s.append(...n.map((d,m)=>o("option",{value:String(m)},d)));let i=o("input",{type:"checkbox",id:"clustered",checked:""}),l=()=>a.replaceChildren(...e.map((d,m)=>qe(d,t[m][Number(s.value)],i.checked)));return s.addEventListener("change",l),i.addEventListener("change",l),b((d,m)=>{d.theme!==m.theme&&l()}),l(),o("section",{id:"pairs",class:"plain"},o("h2",{},"Head pairs"),o("p",{class:"facts"},s," ",i,o("label",{for:"clustered"}," ordered by clustering; "),"blue is -1, orange 1; grey is undefined"),a)}function Ne(r){let e=new Map;for(let{role:t}of r.roles)e.set(t,(e.get(t)??0)+1);return e}function We(r){let e=r.map(Ne),t=[...new Set(e.flatMap(i=>[...i.keys()]))],n=i=>e.reduce((l,d)=>l+(d.get(i)??0),0);t.sort((i,l)=>n(l)-n(i)||i.localeCompare(l));let a=t.map(i=>{let l=o("i",{class:"dot",style:`background: ${T(i)}`}),d=e.map(m=>o("td",{},String(m.get(i)??0)));return o("tr",{},o("th",{},l,` ${i}`),...d)}),s=o("tr",{},o("th",{},"role"),...r.map(i=>o("th",{},i.name)));return o("table",{},o("thead",{},s),o("tbody",{},...a))}function Fe(r){let e=I(r),t=r.layers.map((n,a)=>{let s=Array.from({length:e},(i,l)=>{let d=a*e+l,{role:m,confidence:p}=r.roles[d],c=`${r.heads[d]} \u2013 ${m} (${p.toFixed(2)})`,g=o("button",{type:"button",title:c,"aria-label":`${c}, ${r.name}`,style:`background: ${T(m)}; opacity: ${.35+.65*p}`});return g.addEventListener("click",()=>h({head:d})),o("td",{},g)});return o("tr",{},o("th",{},n),...s)});return o("figure",{},o("figcaption",{},r.name),o("table",{class:"layout"},o("tbody",{},...t)))}function ye(r){let{models:e}=r.report;return o("section",{id:"roles",class:"plain"},o("h2",{},"Head roles"),o("div",{class:"row"},We(e),...e.map(Fe)))}function Ke(r,e){return r==null?v(r):e==="%"?`${v(100*r,2)} %`:v(r)}function oe(r,e){if(r==null)return v(r);let t=e==="%"?v(100*r,2):v(r);return r>0?`+${t}`:t}function Xe(r){return r.p!=null&&r.least_p!=null&&r.p<=r.least_p}function Ye(r){let e=r.intervals.flatMap(s=>s??[]),t=Math.max(...[...r.values,...e].map(s=>Math.abs(s)),1e-12),n=s=>100*Math.abs(s)/t,a=r.values.map((s,i)=>{let l=r.intervals[i],d=l?Math.min(n(l[0]),n(l[1])):0,m=l?Math.max(n(l[0]),n(l[1])):0;return o("div",{class:"measure"},o("i",{class:`bar model-${i}`,style:`width: ${n(s)}%`}),l?o("i",{class:"whisker",style:`left: ${d}%; width: ${m-d}%`}):null)});return o("td",{class:"bars"},...a)}function xe(r){let{models:e,statistics:t}=r.report;if(t.length===0)return null;let n=t.some(i=>i.change!=null),a=[o("th",{},"statistic"),...e.map(i=>o("th",{},i.name)),o("th",{},""),...n?[o("th",{},"change"),o("th",{},"95 % interval"),o("th",{},"p")]:[]],s=t.map(i=>o("tr",{},o("th",{},i.label),...i.values.map(l=>o("td",{},Ke(l,i.unit))),Ye(i),...n?[o("td",{},oe(i.change,i.unit)+(i.unit==="%"?" points":"")),o("td",{},`${oe(i.low,i.unit)} to ${oe(i.high,i.unit)}`),o("td",{},`${Xe(i)?"\u2264 ":""}${v(i.p,4)}`)]:[]));return o("section",{id:"statistics",class:"plain"},o("h2",{},"Statistics"),O(o("table",{class:"statistics"},o("thead",{},o("tr",{},...a)),o("tbody",{},...s))),n?o("p",{class:"facts"},"Means over heads. Whiskers: bootstrap over prompts. Interval: paired bootstrap; p: paired permutation test, ","\u2264 where so many prompts cannot give less."):null)}function Je(r){return o("div",{class:"tile"},o("b",{},r.value),o("span",{},r.label))}function we(r){let{story:e}=r.report;return e.line?o("section",{id:"story"},o("p",{},e.line),o("div",{class:"tiles"},...e.numbers.map(Je))):null}function Qe(r){return r.rows.length===0?null:O(o("table",{},o("thead",{},o("tr",{},...r.columns.map(e=>o("th",{},e)))),o("tbody",{},...r.rows.map(([e,...t])=>o("tr",{},o("th",{},e),...t.map(n=>o("td",{},n)))))))}function Ge(r){let e=r.figures.map(t=>{let n=(s,i)=>{let l=o("img",{alt:t.title,class:s});return Y(i).then(d=>{l.src=`data:image/svg+xml,${encodeURIComponent(new TextDecoder().decode(d))}`}),l},a=t.dark_svg===null?[n("both",t.svg)]:[n("light",t.svg),n("dark",t.dark_svg)];return o("figure",{class:"drawn"},o("figcaption",{},o("b",{},t.title),` ${t.caption}`),...a)});return o("article",{class:"task"},o("h3",{},r.name),o("p",{class:"facts"},[r.description,...r.facts.map(([t,n])=>`${t}: ${n}`)].join(" \xB7 ")),Qe(r),o("div",{class:"row"},...e))}function ke(r){let{tasks:e}=r.report;return e.length===0?null:o("section",{id:"tasks",class:"plain"},o("h2",{},"Tasks"),...e.map(Ge))}var Me=null,Le=!1,Ee=matchMedia("(prefers-color-scheme: dark)");function W(){h({theme:Le?"light":Me??(Ee.matches?"dark":"light")})}function Re(){let r=o("button",{type:"button",id:"theme",title:"light or dark","aria-label":"light or dark"},"\u25D0");return r.addEventListener("click",()=>{Me=f().theme==="dark"?"light":"dark",W()}),r}function Te(r){b(t=>de(r.report,t.theme));let e=t=>{Le=t,W()};addEventListener("beforeprint",()=>e(!0)),addEventListener("afterprint",()=>e(!1)),Ee.addEventListener("change",W),W()}var Ze=3,et=.05;function tt(r,e){return r.map((n,a)=>{let s={head:a,key:0,weight:0};for(let i=0;i<=e;++i)n.at(e,i)>s.weight&&(s={head:a,key:i,weight:n.at(e,i)});return s}).filter(n=>n.weight>=et).sort((n,a)=>a.weight-n.weight)}function $e(r,e){let t=o("div",{class:"tokens","aria-label":"tokens of the prompt"}),n=o("output",{class:"readout",id:"token-readout"}),a="Point at a token: its row and column are shown in every head.",s=0,i=async d=>{let m=++s,{prompt:p}=f(),{tokens:c}=r.prompt(p);if(e.classList.toggle("pointed",d!==null),d===null)return void(n.textContent=a);e.style.setProperty("--tokens",String(c.length)),e.style.setProperty("--token",String(d));let g=await r.maps(p);if(m!==s)return;let x=r.report.models.map((M,z)=>{let L=tt(g[z],d),V=L.slice(0,Ze).map(H=>`${M.heads[H.head]} \u2192 ${w(c[H.key])} ${H.weight.toFixed(2)}`);return`${M.name} (${L.length} heads): ${V.join(", ")||"nothing"}`});n.title=n.textContent=`\u201C${w(c[d])}\u201D looks at \u2013 ${x.join(" \xB7 ")}`},l=()=>{let{tokens:d}=r.prompt(f().prompt);t.replaceChildren(...d.map((m,p)=>{let c=o("button",{type:"button",class:"token","data-token":String(p)},w(m));return c.addEventListener("pointerenter",()=>{i(p)}),c.addEventListener("pointerleave",()=>{i(null)}),c.addEventListener("focus",()=>{i(p)}),c.addEventListener("blur",()=>{i(null)}),c})),i(null)};return b((d,m)=>{d.prompt!==m.prompt&&l()}),l(),o("div",{class:"prompt"},t,n)}function rt(r){let e=o("select",{id:"prompt","aria-label":"prompt"});return r.report.prompts.forEach((t,n)=>{let a=t.text.length>90?`${t.text.slice(0,88)}\u2026`:t.text;e.append(o("option",{value:String(n)},w(a).replace(/\u00b7/g," ")))}),e.addEventListener("change",()=>h({prompt:Number(e.value)})),b(t=>e.value=String(t.prompt)),o("label",{},"prompt ",e)}function nt(){let r=o("select",{id:"order","aria-label":"order of heads"}),e=["layer","role"];for(let t of e)r.append(o("option",{value:t},`by ${t}`));return r.addEventListener("change",()=>h({order:r.value})),o("label",{},"heads ",r)}function ot(r){let{tasks:e}=r.report;if(e.every(n=>n.heads.every(a=>a.length===0)))return null;let t=o("select",{id:"circuit","aria-label":"circuit that is marked"});return e.forEach((n,a)=>t.append(o("option",{value:String(a)},n.name))),t.append(o("option",{value:"-1"},"none")),t.addEventListener("change",()=>h({task:Number(t.value)})),o("label",{},"circuit of ",t)}function at(r){let e=r.report.made.flatMap(([t,n])=>[o("dt",{},t),o("dd",{},o("code",{},n))]);return o("section",{id:"made",class:"plain"},o("h2",{},"How this was made"),o("dl",{},...e))}function it(r){let e=r.report.models[0],t=()=>{let n=e.heads.indexOf(location.hash.slice(1));n>=0&&h({head:n})};b((n,a)=>{if(n.head===a.head)return;let s=n.head===null?"":`#${e.heads[n.head]}`;history.replaceState(null,"",location.pathname+location.search+s)}),addEventListener("hashchange",t),t()}function st(r){let{report:e}=r;document.title=e.title,Te(r);let t=[ke(r),ye(r),xe(r),ve(r),at(r)],n=[o("a",{href:"#grid"},"maps")];for(let i of t)i&&n.push(o("a",{href:`#${i.id}`},i.querySelector("h2").textContent.toLowerCase()));let a=o("header",{class:"top"},o("h1",{},e.title),o("nav",{},...n),o("div",{class:"choices"},rt(r),nt(),ot(r),Re())),s=fe(r);document.body.replaceChildren(a,o("main",{},we(r),o("div",{class:"above"},ue(r),$e(r,s)),s,...t.filter(i=>i!==null)),he(r)),it(r),document.body.dataset.ready=String(f().prompt>=0)}document.head.append(o("style",{},ae));try{st(ie())}catch(r){document.body.replaceChildren(o("p",{class:"failure"},r instanceof Error?r.message:String(r)))}})();
