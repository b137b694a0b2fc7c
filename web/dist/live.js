"use strict";(()=>{var de=`:root {
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
`;var me=`.ask { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.4fr); gap: 1rem; align-items: start; }
textarea {
  font: inherit; font-size: 1.05rem; color: inherit; background: var(--panel); width: 100%; box-sizing: border-box;
  border: 1px solid var(--panel-border); border-radius: 10px; padding: 0.6rem 0.8rem; min-height: 9rem; resize: vertical;
}
.predictions { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 0.4rem 1.4rem; }
.predictions table { width: 100%; font-size: 0.85rem; line-height: 1.2; }
.predictions th, .predictions td { padding: 1px 0.4rem 1px 0; white-space: nowrap; }
.predictions th { max-width: 8rem; overflow: hidden; text-overflow: ellipsis; }
.predictions .bars { position: relative; width: 40%; }
.before { position: absolute; top: 0; bottom: 0; border-left: 2px solid var(--text); }
.was, .kl, .said { color: var(--muted); }
.kl { margin: 0.1rem 0 0; font-size: 0.8rem; }
#status { margin: 0.2rem 0; min-height: 1.4em; color: var(--category-0); }
.above label, .circuit { font-size: 0.85rem; }
.circuit { display: flex; flex-wrap: wrap; gap: 0.3rem 0.6rem; align-items: center; }
.chips { display: flex; flex-wrap: wrap; gap: 4px; }
.chip { font-size: 0.8rem; border: 1px solid var(--category-0); border-radius: 999px; background: none; cursor: pointer; }
/* Roles are not computed here. */
.head { border-width: 0; }
.head.off .map { opacity: 0.25; }
.head.off .label { text-decoration: line-through; color: var(--category-0); }
.head.twin { outline: 2px solid var(--category-1); outline-offset: -1px; }
#cell-readout { font-size: 0.85rem; color: var(--muted); margin: 0.2rem 0; }
@media (max-width: 900px) { .ask { grid-template-columns: minmax(0, 1fr); } textarea { min-height: 4rem; } }
`;var ee=class{constructor(t,r,n){this.size=t;this.cells=r;this.start=n}size;cells;start;at(t,r){return r>t?0:this.cells[this.start+t*(t+1)/2+r]/65535}};async function _e(e){let t=atob(e),r=new Uint8Array(t.length);for(let o=0;o<t.length;++o)r[o]=t.charCodeAt(o);let n=new Blob([r]).stream().pipeThrough(new DecompressionStream("deflate"));return new Response(n).arrayBuffer()}async function te(e,t,r){let n=new DataView(await _e(e)),o=new Uint16Array(n.byteLength/2);for(let a=0;a<o.length;++a)o[a]=n.getUint16(2*a,!0);let s=r*(r+1)/2;if(o.length!==t*s)throw new Error(`the report holds ${o.length} weights where ${t*s} were expected`);return Array.from({length:t},(a,d)=>new ee(r,o,d*s))}var J=class{constructor(t){this.report=t}report;unpacked=new Map;prompt(t){return this.report.prompts[t]}maps(t){let r=this.unpacked.get(t);if(!r){let{tokens:n,maps:o}=this.prompt(t);r=Promise.all(this.report.models.map((s,a)=>te(o[a],s.heads.length,n.length))),this.unpacked.set(t,r)}return r}};function pe(e){return e.heads.length/e.layers.length}function E(e){return e.replace(/ /g,"\xB7").replace(/\n/g,"\u23CE").replace(/\t/g,"\u21E5")||"\u2205"}function R(e){let t=parseInt(e.slice(1),16);return[t>>16,t>>8&255,t&255]}function U(e,t){let r=Math.min(Math.max(t,0),1)*(e.length-1),n=Math.min(Math.floor(r),e.length-2),o=e[n],s=e[n+1],a=r-n;return[o[0]+a*(s[0]-o[0]),o[1]+a*(s[1]-o[1]),o[2]+a*(s[2]-o[2])]}var re=class{empty;undefined;text;page;magnitude;negative;positive;constructor(t){this.empty=R(t.empty),this.undefined=R(t.undefined),this.text=R(t.text),this.page=R(t.page),this.magnitude=t.magnitude.map(R),this.negative=[this.empty,...t.negative.map(R)],this.positive=[this.empty,...t.positive.map(R)]}},T,ue=[];function ge(e,t){let r=e.colors[t];T=new re(r),q=null,ue=e.roles;let n=document.documentElement;n.dataset.theme=t;let o=(s,a)=>n.style.setProperty(`--${s}`,a);o("page",r.page),o("panel",r.panel),o("panel-border",r.panel_border),o("text",r.text),o("muted",r.muted),o("grid",r.grid),o("frame",r.frame),o("empty",r.empty),r.categories.forEach((s,a)=>o(`category-${a}`,s)),o("last-category",r.categories.at(-1)),o("drawn",e.colors.light.page)}function B(e){return e===0?T.empty:U(T.magnitude,e)}var N=1024,q=null;function he(e){if(!q){q=new Uint32Array(N+1);let t=new Uint8ClampedArray(q.buffer);for(let r=0;r<=N;++r)t.set([...r===0?T.empty:U(T.magnitude,r/N),255],4*r)}return q[e===0?0:Math.max(1,Math.round(e*N))]}function fe(e){return e===null?T.undefined:e<0?U(T.negative,-e):U(T.positive,e)}function ne(e){return`rgb(${e.map(t=>Math.round(t)).join(" ")})`}function ce(e){let[t,r,n]=e.map(o=>{let s=o/255;return s<=.04045?s/12.92:((s+.055)/1.055)**2.4});return .2126*t+.7152*r+.0722*n}function be(e){let t=ce(e),r=n=>{let o=ce(n);return(Math.max(o,t)+.05)/(Math.min(o,t)+.05)};return r(T.text)>=r(T.page)?T.text:T.page}function W(e){let t=e.split("+").map(z);return`linear-gradient(90deg, ${t.map((r,n)=>`${r} ${100*n/t.length}% ${100*(n+1)/t.length}%`).join(", ")})`}function z(e){let t=ue.indexOf(e.split(/[+ ]/)[0]);return t<0?"var(--last-category)":`var(--category-${t})`}function i(e,t={},...r){let n=document.createElement(e);for(let[o,s]of Object.entries(t))o==="style"?n.style.cssText=s:n.setAttribute(o,s);return n.append(...r.filter(o=>o!=null)),n}function _(e,t){let r=i("canvas");return Ke(r,e,t),r}function Ke(e,t,r){let n=window.devicePixelRatio||1;e.width=Math.round(t*n),e.height=Math.round(r*n),e.style.width=`${t}px`,e.style.height=`${r}px`}function A(e){let t=e.getContext("2d");if(!t)throw new Error("this browser has no canvas");return t}function O(e,t=3){return e==null||!Number.isFinite(e)?"\u2013":e!==0&&Math.abs(e)<10**-t?e.toExponential(1):e.toFixed(t)}var D={theme:"light",prompt:0,order:"layer",head:null,task:0},xe=[];function k(){return D}function v(e){let t=D;D={...D,...e};for(let r of xe)r(D,t)}function $(e){xe.push(e)}function oe(){let e=[0,.001,.25,.5,.75,1].map(t=>{let r=B(t),n=`background: ${ne(r)}; color: ${ne(be(r))}`;return i("span",{style:n},t===.001?">0":String(t))});return i("div",{class:"ramp","aria-label":"scale of weights"},...e)}function ve(e){let{models:t,roles:r,tasks:n}=e.report,o=new Set(t.flatMap(d=>d.roles.flatMap(({role:m})=>m.split("+").filter(p=>p!=="")))),s=i("div",{class:"legend",id:"legend"}),a=()=>{let d=r.filter(m=>[...o].some(p=>p.split(" ")[0]===m)).map(m=>i("span",{},i("i",{class:"dot",style:`background: ${z(m)}`}),` ${m}`));[...o].some(m=>!r.includes(m.split(" ")[0]))&&d.push(i("span",{},i("i",{class:"dot",style:`background: ${z("other")}`})," other")),n.some(m=>m.heads.some(p=>p.length>0))&&d.push(i("span",{},i("i",{class:"dot ring"})," in the circuit")),s.replaceChildren(i("span",{class:"label"},"weight"),oe(),...d)};return $((d,m)=>{d.theme!==m.theme&&a()}),a(),s}function we(e,t,r){let n=new ImageData(t,e);for(let o=0;o<e;++o)for(let s=0;s<t;++s){let a=r(o,s);if(a===null)continue;let d=4*(o*t+s);n.data[d]=a[0],n.data[d+1]=a[1],n.data[d+2]=a[2],n.data[d+3]=255}return ae(n)}function ae(e){let t=document.createElement("canvas");return t.width=e.width,t.height=e.height,A(t).putImageData(e,0,0),t}function ie(e,t){let r=A(e);r.imageSmoothingEnabled=t.width>e.width,r.imageSmoothingQuality="high",r.clearRect(0,0,e.width,e.height),r.drawImage(t,0,0,e.width,e.height)}function ye(e,t){let{width:r,height:n}=e,o=A(t).getImageData(0,0,t.width,t.height),s=new ImageData(r,n),a=(d,m,p)=>{let l=Math.floor(d*p/m);return[l,Math.max(l+1,Math.floor((d+1)*p/m))]};for(let d=0;d<n;++d){let[m,p]=a(d,n,t.height);for(let l=0;l<r;++l){let[u,h]=a(l,r,t.width);for(let g=0;g<4;++g){let b=0;for(let w=m;w<p;++w)for(let x=u;x<h;++x)b+=o.data[4*(w*t.width+x)+g];s.data[4*(d*r+l)+g]=b/((p-m)*(h-u))}}}A(e).putImageData(s,0,0)}var K=class{constructor(t,r,n,o,s,a,d){this.tokens=o;let m=s/o.length>=9;this.margin=m?78:8,this.side=s;let p=s+this.margin;this.canvas=_(p,p),this.canvas.dataset.map=n,this.picture=we(o.length,o.length,(l,u)=>u>l?null:a(l,u)),this.canvas.addEventListener("pointermove",l=>d(this.cellAt(l))),this.canvas.addEventListener("pointerleave",()=>d(null)),this.root=i("figure",{class:"large"},i("figcaption",{},i("b",{},t),` ${r}`),this.canvas),this.draw(null)}tokens;root;canvas;picture;margin;side;cellAt(t){let r=this.canvas.getBoundingClientRect(),n=this.tokens.length,o=Math.floor((t.clientX-r.left-this.margin)/this.side*n),s=Math.floor((t.clientY-r.top)/this.side*n);return o<0||s>=n||o>s?null:{query:s,key:o}}draw(t){let r=A(this.canvas),n=getComputedStyle(document.documentElement),o=n.getPropertyValue("--text"),s=n.getPropertyValue("--muted");r.setTransform(1,0,0,1,0,0),r.clearRect(0,0,this.canvas.width,this.canvas.height);let a=this.canvas.width/(this.side+this.margin);r.scale(a,a);let{side:d,margin:m}=this,p=this.tokens.length,l=d/p;r.imageSmoothingEnabled=!1,r.drawImage(this.picture,m,0,d,d),r.strokeStyle=s,r.lineWidth=1,r.beginPath(),r.moveTo(m,0),r.lineTo(m,d),r.lineTo(m+d,d),r.stroke(),m>8&&this.labels(r,t,o,s),t&&(r.strokeStyle=n.getPropertyValue("--category-0"),r.lineWidth=1.5,r.strokeRect(m+t.key*l,t.query*l,l,l))}labels(t,r,n,o){let{side:s,margin:a}=this,d=s/this.tokens.length;t.font=`${Math.min(12,d*.95)}px system-ui, sans-serif`,t.textBaseline="middle",t.textAlign="right";let m=p=>{let l=E(p);return l.length>11?`${l.slice(0,10)}\u2026`:l};this.tokens.forEach((p,l)=>{t.fillStyle=!r||r.query===l?n:o,t.fillText(m(p),a-5,(l+.5)*d),t.save(),t.translate(a+(l+.5)*d,s+5),t.rotate(-Math.PI/2),t.fillStyle=!r||r.key===l?n:o,t.fillText(m(p),0,0),t.restore()})}};function Xe(e,t){let r=0;for(let n=0;n<e.size;++n)for(let o=0;o<=n;++o)r=Math.max(r,Math.abs(t.at(n,o)-e.at(n,o)));return r}function X(e,t){let{head:r}=k(),n=e.report.models[0].roles.length;r!==null&&v({head:(r+t+n)%n})}function Ge(e,t){if(e.report.roles.length===0)return null;let r=e.report.models.map(n=>{let{role:o,confidence:s}=n.roles[t],a=i("i",{class:"dot",style:`background: ${W(o)}`});return i("span",{},a,` ${n.name}: ${o} (${s.toFixed(2)})`)});return i("p",{class:"roleline"},...r)}function Ye(e,t){let{models:r,statistics:n}=e.report;if(n.length===0)return null;let o=n.map(a=>i("tr",{},i("th",{},a.label),...r.map(d=>i("td",{},O(d.statistics[t]?.[a.name]))))),s=i("tr",{},i("th",{}),...r.map(a=>i("th",{},a.name)));return i("table",{class:"numbers"},i("thead",{},s),i("tbody",{},...o))}function Qe(e,t){let r=(n,o,s)=>{let a=i("button",{type:"button","aria-label":n,title:n},o);return a.addEventListener("click",s),a};return i("header",{},i("h2",{id:"detail-title"},t),r("previous head (left arrow)","\u2190",()=>X(e,-1)),r("next head (right arrow)","\u2192",()=>X(e,1)),r("close (Escape)","\xD7",()=>v({head:null})))}function ke(e,t){let r=i("dialog",{id:"detail","aria-labelledby":"detail-title"}),{models:n}=e.report,o=0,s=async()=>{let a=++o,{head:d,prompt:m}=k();if(d===null)return r.close();let p=await e.maps(m);if(a!==o)return;let l=p.map(c=>c[d]),{tokens:u}=e.prompt(m),h=n.length===2?3:1,g=window.innerWidth>=900?h:1,b=Math.max(180,Math.min(520,(window.innerWidth-120)/g-90)),w=i("output",{class:"readout",id:"readout"}),x="Point at a cell: rows are queries, columns are keys.";w.textContent=x;let y=[],L=c=>{for(let M of y)M.draw(c);if(!c)return void(w.textContent=x);let f=n.map((M,S)=>`${M.name} ${O(l[S].at(c.query,c.key),4)}`);w.textContent=`query ${c.query} \u201C${E(u[c.query])}\u201D \u2192 key ${c.key} \u201C${E(u[c.key])}\u201D: ${f.join(", ")}`};if(n.forEach((c,f)=>y.push(new K(c.name,"weights 0 to 1",`model-${f}`,u,b,(M,S)=>B(l[f].at(M,S)),L))),n.length===2){let c=Xe(l[0],l[1])||1;y.push(new K("difference",`${n[1].name} less ${n[0].name}, \xB1${O(c,2)}`,"difference",u,b,(f,M)=>fe((l[1].at(f,M)-l[0].at(f,M))/c),L))}let V=[Qe(e,`Head ${n[0].heads[d]}`),Ge(e,d),i("div",{class:"row"},...y.map(c=>c.root)),w,oe(),Ye(e,d),t?.(d)];r.replaceChildren(...V.filter(c=>c!=null)),r.open||r.showModal()};return $((a,d)=>{(a.head!==d.head||a.prompt!==d.prompt||a.theme!==d.theme)&&s()}),r.addEventListener("close",()=>v({head:null})),r.addEventListener("click",a=>{a.target===r&&v({head:null})}),document.addEventListener("keydown",a=>{k().head!==null&&(a.key==="ArrowLeft"&&X(e,-1),a.key==="ArrowRight"&&X(e,1))}),r}var Me=96,Ze=20;function Ee(e){let t=new ImageData(e.size,e.size),r=new Uint32Array(t.data.buffer);for(let n=0;n<e.size;++n)for(let o=0;o<=n;++o)r[n*e.size+o]=he(e.at(n,o));return ae(t)}function et(e,t){let r=e.roles.map((n,o)=>o);return t==="role"&&r.sort((n,o)=>e.roles[n].role.localeCompare(e.roles[o].role)),r}function tt(e,t,r){return(e.report.tasks[k().task]?.heads[t]?.indexOf(r)??-1)+1}function rt(e,t){e.classList.toggle("member",t>0),e.querySelector(".rank").textContent=t>0?String(t):""}function nt(e,t,r,n,o){let{role:s,confidence:a}=e.roles[r],d=e.heads[r],m=_(Me,Me);ie(m,Ee(n));let p=i("button",{class:"head",type:"button","data-model":String(t),"data-head":d,"aria-label":`${d} of ${e.name}${s&&`: ${s}`}`,title:s?`${d} \u2013 ${s} (${a.toFixed(2)})`:d,style:`--role: ${z(s)}; --stripe: ${W(s)}`},i("span",{class:"map"},m),i("span",{class:"label"},d),i("span",{class:"rank"}));return p.addEventListener("click",l=>o(r,l)),p}function Le(e,t=r=>v({head:r})){let r=e.report.models.map(p=>{let l=i("div",{class:"maps"}),u=p.facts.flatMap((g,b)=>[b>0?" \xB7 ":null,i("span",{},g.join(" "))]);return{panel:i("section",{class:"panel"},i("div",{class:"title"},i("h2",{},p.name),i("p",{class:"facts"},...u)),l),maps:l}}),n=0,o=null,s=async()=>{let p=++n,{prompt:l,order:u}=k(),h=await e.maps(l);if(p===n){if(a=h,o===u)return d();o=u,e.report.models.forEach((g,b)=>{let w=et(g,u),x=pe(g),y=u==="layer"&&x<=Ze;r[b].maps.classList.toggle("by-layer",y),r[b].maps.style.setProperty("--heads",String(x)),r[b].maps.style.setProperty("--layers",String(g.layers.length)),r[b].maps.replaceChildren(...w.map(L=>nt(g,b,L,h[b][L],t)))}),m()}},a=[],d=(p=ie)=>a.forEach((l,u)=>r[u].maps.querySelectorAll(".head").forEach(h=>{let g=e.report.models[u].heads.indexOf(h.dataset.head);p(h.querySelector("canvas"),Ee(l[g]))})),m=()=>r.forEach(({maps:p},l)=>p.querySelectorAll(".head").forEach(u=>rt(u,tt(e,l,u.dataset.head))));return $((p,l)=>{(p.prompt!==l.prompt||p.order!==l.order)&&s(),p.theme!==l.theme&&d(ye),p.task!==l.task&&m()}),s(),i("div",{class:"grid",id:"grid"},...r.map(({panel:p})=>p))}var Te=null,$e=!1,Ce=matchMedia("(prefers-color-scheme: dark)");function G(){v({theme:$e?"light":Te??(Ce.matches?"dark":"light")})}function Se(){let e=i("button",{type:"button",id:"theme",title:"light or dark","aria-label":"light or dark"},"\u25D0");return e.addEventListener("click",()=>{Te=k().theme==="dark"?"light":"dark",G()}),e}function Pe(e){$(r=>ge(e.report,r.theme));let t=r=>{$e=r,G()};addEventListener("beforeprint",()=>t(!0)),addEventListener("afterprint",()=>t(!1)),Ce.addEventListener("change",G),G()}var ot=3,at=.05;function it(e,t){return e.map((n,o)=>{let s={head:o,key:0,weight:0};for(let a=0;a<=t;++a)n.at(t,a)>s.weight&&(s={head:o,key:a,weight:n.at(t,a)});return s}).filter(n=>n.weight>=at).sort((n,o)=>o.weight-n.weight)}function Re(e,t){let r=i("div",{class:"tokens","aria-label":"tokens of the prompt"}),n=i("output",{class:"readout",id:"token-readout"}),o="Point at a token: its row and column are shown in every head.",s=0,a=async m=>{let p=++s,{prompt:l}=k(),{tokens:u}=e.prompt(l);if(t.classList.toggle("pointed",m!==null),m===null)return void(n.textContent=o);t.style.setProperty("--tokens",String(u.length)),t.style.setProperty("--token",String(m));let h=await e.maps(l);if(p!==s)return;let g=e.report.models.map((b,w)=>{let x=it(h[w],m),y=x.slice(0,ot).map(L=>`${b.heads[L.head]} \u2192 ${E(u[L.key])} ${L.weight.toFixed(2)}`);return`${b.name} (${x.length} heads): ${y.join(", ")||"nothing"}`});n.title=n.textContent=`\u201C${E(u[m])}\u201D looks at \u2013 ${g.join(" \xB7 ")}`},d=()=>{let{tokens:m}=e.prompt(k().prompt);r.replaceChildren(...m.map((p,l)=>{let u=i("button",{type:"button",class:"token","data-token":String(l)},E(p));return u.addEventListener("pointerenter",()=>{a(l)}),u.addEventListener("pointerleave",()=>{a(null)}),u.addEventListener("focus",()=>{a(l)}),u.addEventListener("blur",()=>{a(null)}),u})),a(null)};return $((m,p)=>{m.prompt!==p.prompt&&d()}),d(),i("div",{class:"prompt"},r,n)}function Y(){let e=new URLSearchParams(location.hash.slice(1));return{prompt:e.get("prompt"),off:(e.get("off")??"").split(",").filter(t=>t!==""),head:e.get("head"),token:e.get("token")??""}}function se(e){let t=new URLSearchParams;e.prompt!==null&&t.set("prompt",e.prompt),e.off.length>0&&t.set("off",e.off.join(",")),e.head!==null&&t.set("head",e.head),e.token&&t.set("token",e.token),history.replaceState(null,"",`${location.pathname}#${t.toString()}`)}var j=class extends Error{constructor(r,n){super(r);this.remedy=n}remedy},le="";function Ae(e){le=e}async function H(e,t,r,n){let o={};le&&(o["X-Filigree-Token"]=le),r&&(o["Content-Type"]="application/json");let s=await fetch(t,{method:e,headers:o,body:r?JSON.stringify(r):null,signal:n??null}),a=await s.json();if(!s.ok)throw new j(a.error??"no answer",a.remedy??"");return a}var He=()=>H("GET","/api/models"),ze=(e,t)=>H("POST","/api/tokens",{prompt:e},t);async function Oe(e,t,r){return(await H("POST","/api/predict",{...e,models:[t]},r)).models[0]}async function je(e,t,r){return(await H("POST","/api/maps",{...e,models:[t]},r)).models[0]}var Ie=e=>H("POST","/api/jobs",{task:e}),qe=e=>H("GET",`/api/jobs/${e}`),De=e=>H("DELETE",`/api/jobs/${e}`);var st=250;function lt(e){let{label:t,done:r,total:n}=e.progress;return e.state==="running"?`${t} ${n>0?`${r} of ${n}`:"\u2026"}`:e.state==="failed"?e.error??"failed":e.state==="cancelled"?"cancelled":e.result.models.map(({model:o,size:s,parts:a})=>`${o}: ${s===null?"no circuit of":`${s} of`} ${a??""} heads`).join(", ")}function Ve(e,t,r){let n=i("select",{id:"task","aria-label":"task"});for(let{name:m,description:p}of e.tasks)n.append(i("option",{value:m,title:p},m));let o=i("button",{type:"button",id:"find"},"find its heads"),s=i("output",{class:"said",id:"circuit"}),a=null,d=async(m,p)=>{for(;a===p;){let l=await qe(p);if(s.textContent=lt(l),l.state==="running"){await new Promise(u=>setTimeout(u,st));continue}l.result&&t.mark(m,l.result.models.map(({circuit:u})=>u??[])),a=null}};return o.addEventListener("click",()=>{let m=n.value;(async()=>{if(a!==null)return void await De(a);let l=await Ie(m);a=l.job,o.textContent="cancel",await d(m,l.job)})().catch(r).finally(()=>{a===null&&(o.textContent="find its heads")})}),i("div",{class:"circuit"},i("label",{},"task ",n),o,s)}function Fe(e,t){let r=i("output",{class:"readout",id:"cell-readout"}),n="Point at a map: rows look at columns. Click for the large map, Shift-click switches the head off.";r.textContent=n;let o=[],s=()=>{for(let a of o)a.classList.remove("twin");o=[],r.textContent=n};return t.addEventListener("pointermove",a=>{let d=a.target.closest(".head");if(s(),!d)return;let m=d.dataset.head;o=[...t.querySelectorAll(`.head[data-head="${m}"]`)];for(let x of o)x.classList.add("twin");let p=d.querySelector("canvas").getBoundingClientRect(),{tokens:l}=e.prompt(),u=(x,y)=>Math.floor(x/y*l.length),h=u(a.clientY-p.top,p.height),g=u(a.clientX-p.left,p.width),b=e.report.models[0].heads.indexOf(m);if(h<0||h>=l.length||g<0||g>h)return void(r.textContent=m);let w=e.report.models.map((x,y)=>`${x.name} ${O(e.mapsNow()[y][b].at(h,g))}`);r.textContent=`${m}: \u201C${E(l[h])}\u201D (${h}) looks at \u201C${E(l[g])}\u201D (${g}) \u2013 ${w.join(", ")}`}),t.addEventListener("pointerleave",s),r}var Q=class extends J{shown=[];constructor(t){let r={format:"live",title:"Filigree",story:{line:"",numbers:[]},models:t.models.map(n=>({name:n.name,layers:n.layers,heads:n.heads,facts:[["",`${n.layers.length} \xD7 ${n.heads.length/n.layers.length} heads`],["",`${(n.parameters/1e6).toPrecision(3)} M parameters`],["",n.gated?"gated attention":"softmax attention"]],roles:n.heads.map(()=>({role:"",confidence:0})),statistics:[]})),prompts:[{text:"",tokens:[],maps:[]}],statistics:[],pairs:[],tasks:[],roles:[],colors:t.colors,made:[]};super(r)}prompt(){return this.report.prompts[0]}maps(){return Promise.resolve(this.shown)}mapsNow(){return this.shown}show(t,r,n){this.report.prompts[0]={text:t,tokens:r,maps:[]},this.shown=n,v({prompt:k().prompt+1})}mark(t,r){this.report.tasks=[{name:t,description:"",facts:[],columns:[],rows:[],heads:r,figures:[]}],v({task:-1}),v({task:0})}};function Je(e){return e>=.001?`${(100*e).toFixed(1)} %`:"<0.1 %"}var Z=class{root;panels;constructor(t){this.panels=t.map(()=>i("div",{class:"next"})),this.root=i("div",{class:"predictions",id:"predictions"},...t.map((r,n)=>i("section",{"aria-label":`next token of ${r}`},i("h2",{},r),this.panels[n])))}show(t,r){let{plain:n,changed:o,divergence:s}=r,a=(o??n).next,m=a.map((l,u)=>u).sort((l,u)=>a[u].probability-a[l].probability).slice(0,8).map(l=>{let{token:u,probability:h}=a[l],g=n.next[l].probability;return i("tr",{},i("th",{},E(u)),i("td",{class:"bars"},i("span",{class:`bar model-${t}`,style:`width: ${100*h}%`}),o?i("span",{class:"before",style:`left: ${100*g}%`}):null),i("td",{},Je(h)),o?i("td",{class:"was"},`was ${Je(g)}`):null)}),p=s?.at(-1);this.panels[t].replaceChildren(i("table",{},i("tbody",{},...m)),i("p",{class:"kl"},p===void 0?"":`changed by ${p.toPrecision(2)} nats`))}};var dt="When Mary and John went to the store, John gave a drink to",mt=10;function pt(e){let t=new Q(e),r=e.models.map(c=>c.name),n=e.models[0].heads;Pe(t);let o=Y(),s=i("textarea",{id:"prompt",rows:"2",spellcheck:"false","aria-label":"prompt"}),a=i("output",{id:"count",class:"said"}),d=i("p",{id:"status",role:"status"}),m=new Z(r),p=i("div",{class:"chips",id:"off","aria-label":"heads that are switched off"}),l=c=>{c instanceof DOMException&&c.name==="AbortError"||(d.textContent=c instanceof j?`${c.message} \u2013 ${c.remedy}`:"The server does not answer; is filigree serve still running?")},u=i("div"),h=!1,g=c=>{o.off=o.off.includes(c)?o.off.filter(f=>f!==c):[...o.off,c],b(),y()},b=()=>{document.querySelectorAll(".head").forEach(c=>c.classList.toggle("off",o.off.includes(c.dataset.head))),p.replaceChildren(...o.off.map(c=>{let f=i("button",{type:"button",class:"chip","data-off":c,title:"switch on again"},`${c} off \xD7`);return f.addEventListener("click",()=>g(c)),f}))},w=()=>{h=!0;let c=i("input",{type:"checkbox",id:"switch"}),f=Le(t,(S,I)=>{I.shiftKey||c.checked?g(n[S]):v({head:S})}),M=S=>{let I=n[S],C=i("button",{type:"button",id:"toggle"},"switch off or on");return C.addEventListener("click",()=>g(I)),C};u.replaceChildren(i("div",{class:"above"},ve(t),i("label",{},c," a click switches off"),p,Ve(e,t,l)),Re(t,f),Fe(t,f),f,ke(t,M)),o.head!==null&&n.includes(o.head)&&v({head:n.indexOf(o.head)})},x=new AbortController,y=()=>{x.abort(),x=new AbortController;let{signal:c}=x,f=s.value;if(o.prompt=f,se(o),f==="")return;let M={prompt:f,ablate:o.off},S=performance.now();ze(f,c).then(({tokens:C})=>{a.textContent=`${C.length} tokens`,d.textContent=""}).catch(l);let I=r.map(async(C,P)=>{let{tokens:F,maps:Ue}=await je(M,C,c);return{tokens:F,maps:await te(Ue,e.models[P].heads.length,F.length)}});r.forEach((C,P)=>Oe(M,C,c).then(F=>m.show(P,F),l)),Promise.all(I).then(async C=>{c.aborted||(t.show(f,C[0].tokens,C.map(P=>P.maps)),h||w(),await new Promise(P=>requestAnimationFrame(P)),b(),document.body.dataset.took=String(Math.round(performance.now()-S)),document.body.dataset.shown=f,document.body.dataset.off=M.ablate.join())}).catch(l)},L=0;s.addEventListener("input",()=>{clearTimeout(L),L=setTimeout(y,mt)}),$((c,f)=>{c.head!==f.head&&(o.head=c.head===null?null:n[c.head],se(o))});let V=()=>{o={...Y(),token:o.token},o.off=o.off.filter(f=>n.includes(f)),s.value=o.prompt??dt;let c=o.head===null?-1:n.indexOf(o.head);h&&v({head:c<0?null:c}),y()};addEventListener("hashchange",V),document.body.replaceChildren(i("header",{class:"top"},i("h1",{},"Filigree"),i("span",{class:"facts"},r.join(" beside ")),i("div",{class:"choices"},a,Se())),i("main",{},i("div",{class:"ask"},s,m.root),d,u)),V(),document.body.dataset.ready=String(k().prompt>=0)}var Ne=new CSSStyleSheet;Ne.replaceSync(de+me);document.adoptedStyleSheets=[Ne];Ae(Y().token);He().then(pt,e=>{let t=e instanceof j?`${e.message}: ${e.remedy}`:String(e);document.body.replaceChildren(i("p",{class:"failure"},t))});})();
