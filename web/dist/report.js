"use strict";(()=>{var j=`:root {
  --paper: #ffffff;
  --panel: #f4f6f9;
  --ink: #16202c;
  --faint: #6b7785;
  --line: #d5dbe3;
  --accent: #08519c;
  color-scheme: light;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root:not([data-theme="light"]) {
    --paper: #12161c;
    --panel: #1b222b;
    --ink: #e4e9f0;
    --faint: #93a0b0;
    --line: #323c49;
    --accent: #7db8ee;
    color-scheme: dark;
  }
}
:root[data-theme="dark"] {
  --paper: #12161c;
  --panel: #1b222b;
  --ink: #e4e9f0;
  --faint: #93a0b0;
  --line: #323c49;
  --accent: #7db8ee;
  color-scheme: dark;
}
body { margin: 0; background: var(--paper); color: var(--ink); }
h1 { font-size: 1.15rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 0; }
a { color: var(--accent); }
button, select { font: inherit; color: inherit; }
.top {
  position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 0.4rem 1.4rem;
  align-items: center; padding: 0.6rem 1.4rem; background: var(--paper);
  border-bottom: 1px solid var(--line);
}
.top nav { display: flex; gap: 1rem; }
.top nav a { text-decoration: none; }
.choices { margin-left: auto; display: flex; flex-wrap: wrap; gap: 0.6rem 1rem; align-items: center; }
.choices select { max-width: 26rem; }
main { padding: 1.2rem 1.4rem 4rem; max-width: 1500px; margin: 0 auto; }
section, .grid { scroll-margin-top: 4rem; }
.panel {
  background: var(--panel); border: 1px solid var(--line); border-radius: 14px;
  padding: 0.9rem 1.1rem 1.1rem; margin-bottom: 1.1rem;
}
.facts { color: var(--faint); margin: 0.1rem 0 0.7rem; font-size: 0.88rem; }
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(64px, 78px)); gap: 8px 6px; }
/* A row a layer, where it fits. */
.maps.by-layer { grid-template-columns: repeat(var(--heads), minmax(44px, 104px)); }
.head {
  position: relative; padding: 2px; border: 1px solid transparent; border-radius: 5px;
  background: none; cursor: pointer; border-bottom: 3px solid var(--role);
}
.head canvas { display: block; width: 100% !important; height: auto !important; background: #fff; border-radius: 2px; }
.head:hover, .head:focus-visible { border-color: var(--accent); outline: none; }
.head .label {
  position: absolute; top: 3px; right: 5px; font-size: 10px; line-height: 1.2; color: #44505c;
  font-variant-numeric: tabular-nums;
}
.plain { margin-top: 2.2rem; }
.row { display: flex; flex-wrap: wrap; gap: 1.6rem; align-items: flex-start; margin-top: 0.7rem; }
figure { margin: 0; }
figcaption { color: var(--faint); font-size: 0.9rem; margin-bottom: 0.3rem; }
figcaption b { color: var(--ink); }
table { border-collapse: collapse; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; padding: 0.22rem 0.9rem 0.22rem 0; }
td { text-align: right; padding: 0.22rem 0.9rem; }
thead th { color: var(--faint); border-bottom: 1px solid var(--line); }
thead th:not(:first-child) { text-align: right; padding: 0.22rem 0.9rem; }
.dot { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 50%; }
.layout td { padding: 1px; }
.layout th { color: var(--faint); font-size: 0.75rem; padding: 0 0.4rem 0 0; }
.layout button { width: 20px; height: 20px; border: 0; border-radius: 3px; padding: 0; cursor: pointer; display: block; }
.layout button:hover, .layout button:focus-visible { outline: 2px solid var(--accent); }
.bars { min-width: 140px; text-align: left; }
.bar { display: block; height: 6px; margin: 2px 0; border-radius: 2px; background: #9aa7b5; }
.bar.model-1 { background: #08519c; }
:root[data-theme="dark"] .bar.model-1 { background: #7db8ee; }
dialog {
  border: 1px solid var(--line); border-radius: 14px; background: var(--paper); color: var(--ink);
  padding: 1rem 1.4rem 1.4rem; max-width: calc(100vw - 2rem); box-sizing: border-box;
}
dialog::backdrop { background: rgb(10 15 22 / 55%); }
dialog header { display: flex; gap: 0.5rem; align-items: center; }
dialog header h2 { margin-right: auto; }
dialog header button {
  border: 1px solid var(--line); background: none; border-radius: 6px; min-width: 2rem; cursor: pointer;
}
.roleline { display: flex; flex-wrap: wrap; gap: 0.2rem 1.4rem; margin: 0.2rem 0 0; font-size: 0.9rem; }
.large canvas { cursor: crosshair; }
.readout { display: block; min-height: 1.6em; margin-top: 0.5rem; font-variant-numeric: tabular-nums; }
.ramp { display: flex; margin: 0.3rem 0 0.8rem; font-size: 11px; }
.ramp span { width: 46px; text-align: center; padding: 1px 0; color: #16202c; border: 1px solid #d5dbe3; }
.ramp span:nth-child(n + 4) { color: #fff; }
.numbers { margin-top: 0.4rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1.2rem; font-size: 0.92rem; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
.failure { padding: 2rem; }
`;var q=class{constructor(t,r,o){this.size=t;this.cells=r;this.start=o}size;cells;start;at(t,r){return r>t?0:this.cells[this.start+t*(t+1)/2+r]/65535}};async function te(e){let t=Uint8Array.from(atob(e),o=>o.charCodeAt(0)),r=new Blob([t]).stream().pipeThrough(new DecompressionStream("deflate"));return new Response(r).arrayBuffer()}async function re(e,t,r){let o=new DataView(await te(e)),a=new Uint16Array(o.byteLength/2);for(let i=0;i<a.length;++i)a[i]=o.getUint16(2*i,!0);let s=r*(r+1)/2;if(a.length!==t*s)throw new Error(`the report holds ${a.length} weights where ${t*s} were expected`);return Array.from({length:t},(i,l)=>new q(r,a,l*s))}var N=class{constructor(t){this.report=t}report;unpacked=new Map;maps(t){let r=this.unpacked.get(t);if(!r){let{tokens:o,maps:a}=this.report.prompts[t];r=Promise.all(this.report.models.map((s,i)=>re(a[i],s.layers*s.heads,o.length))),this.unpacked.set(t,r)}return r}};function F(){let e=document.getElementById("filigree-data");if(!e?.textContent)throw new Error("this page holds no report");let t=JSON.parse(e.textContent);if(t.format!=="filigree-report-1")throw new Error(`this viewer does not know the format '${t.format}'`);return new N(t)}function f(e,t){return`L${Math.floor(t/e.heads)}H${t%e.heads}`}function M(e){return e.replace(/ /g,"\xB7").replace(/\n/g,"\u23CE").replace(/\t/g,"\u21E5")||"\u2205"}function O(e,t){let r=Math.min(Math.max(t,0),1)*(e.length-1),o=Math.min(Math.floor(r),e.length-2),a=e[o],s=e[o+1],i=r-o;return[a[0]+i*(s[0]-a[0]),a[1]+i*(s[1]-a[1]),a[2]+i*(s[2]-a[2])]}var ne=[[232,240,250],[158,202,225],[66,146,198],[8,81,156],[8,34,82]],oe=[255,255,255];function $(e){return e===0?oe:O(ne,e)}var ae=[[255,255,255],[146,197,222],[8,64,129]],ie=[[255,255,255],[253,174,107],[140,45,4]];function S(e){return e<0?O(ae,-e):O(ie,e)}function U(e){return`rgb(${e.map(t=>Math.round(t)).join(" ")})`}var se={sink:"#d55e00",current:"#0072b2",previous:"#009e73",offset:"#cc79a7",diffuse:"#e69f00",stripes:"#56b4e9",fragmented:"#882255",empty:"#999933",induction:"#b8b8b8",duplicate:"#332288"};function k(e){return se[e.split(/[+ ]/)[0]]??"#4d4d4d"}function n(e,t={},...r){let o=document.createElement(e);for(let[a,s]of Object.entries(t))o.setAttribute(a,s);return o.append(...r.filter(a=>a!=null)),o}function E(e,t){let r=n("canvas");return le(r,e,t),r}function le(e,t,r){let o=window.devicePixelRatio||1;e.width=Math.round(t*o),e.height=Math.round(r*o),e.style.width=`${t}px`,e.style.height=`${r}px`}function C(e){let t=e.getContext("2d");if(!t)throw new Error("this browser has no canvas");return t}function g(e,t=3){return e==null||!Number.isFinite(e)?"\u2013":e!==0&&Math.abs(e)<10**-t?e.toExponential(1):e.toFixed(t)}function R(e,t,r){let o=document.createElement("canvas");o.width=t,o.height=e;let a=new ImageData(t,e);for(let s=0;s<e;++s)for(let i=0;i<t;++i){let l=r(s,i);if(l===null)continue;let d=4*(s*t+i);a.data[d]=l[0],a.data[d+1]=l[1],a.data[d+2]=l[2],a.data[d+3]=255}return C(o).putImageData(a,0,0),o}function A(e,t){let r=C(e);r.imageSmoothingEnabled=t.width>e.width,r.imageSmoothingQuality="high",r.clearRect(0,0,e.width,e.height),r.drawImage(t,0,0,e.width,e.height)}var T={prompt:0,order:"layer",head:null},_=[];function x(){return T}function h(e){let t=T;T={...T,...e};for(let r of _)r(T,t)}function L(e){_.push(e)}var P=class{constructor(t,r,o,a,s,i,l){this.tokens=a;let d=s/a.length>=9;this.margin=d?78:8,this.side=s;let c=s+this.margin;this.canvas=E(c,c),this.canvas.dataset.map=o,this.picture=R(a.length,a.length,(m,u)=>u>m?null:i(m,u)),this.canvas.addEventListener("pointermove",m=>l(this.cellAt(m))),this.canvas.addEventListener("pointerleave",()=>l(null)),this.root=n("figure",{class:"large"},n("figcaption",{},n("b",{},t),` ${r}`),this.canvas),this.draw(null)}tokens;root;canvas;picture;margin;side;cellAt(t){let r=this.canvas.getBoundingClientRect(),o=this.tokens.length,a=Math.floor((t.clientX-r.left-this.margin)/this.side*o),s=Math.floor((t.clientY-r.top)/this.side*o);return a<0||s>=o||a>s?null:{query:s,key:a}}draw(t){let r=C(this.canvas),o=getComputedStyle(document.documentElement),a=o.getPropertyValue("--ink")||"#000",s=o.getPropertyValue("--faint")||"#888";r.setTransform(1,0,0,1,0,0),r.clearRect(0,0,this.canvas.width,this.canvas.height);let i=this.canvas.width/(this.side+this.margin);r.scale(i,i);let{side:l,margin:d}=this,c=this.tokens.length,m=l/c;r.imageSmoothingEnabled=!1,r.drawImage(this.picture,d,0,l,l),r.strokeStyle=s,r.lineWidth=1,r.beginPath(),r.moveTo(d,0),r.lineTo(d,l),r.lineTo(d+l,l),r.stroke(),d>8&&this.labels(r,t,a,s),t&&(r.strokeStyle="#d55e00",r.lineWidth=1.5,r.strokeRect(d+t.key*m,t.query*m,m,m))}labels(t,r,o,a){let{side:s,margin:i}=this,l=s/this.tokens.length;t.font=`${Math.min(12,l*.95)}px system-ui, sans-serif`,t.textBaseline="middle",t.textAlign="right";let d=c=>{let m=M(c);return m.length>11?`${m.slice(0,10)}\u2026`:m};this.tokens.forEach((c,m)=>{t.fillStyle=!r||r.query===m?o:a,t.fillText(d(c),i-5,(m+.5)*l),t.save(),t.translate(i+(m+.5)*l,s+5),t.rotate(-Math.PI/2),t.fillStyle=!r||r.key===m?o:a,t.fillText(d(c),0,0),t.restore()})}};function ce(e,t){let r=0;for(let o=0;o<e.size;++o)for(let a=0;a<=o;++a)r=Math.max(r,Math.abs(t.at(o,a)-e.at(o,a)));return r}function z(e,t){let{head:r}=x(),o=e.report.models[0].roles.length;r!==null&&h({head:(r+t+o)%o})}function de(e,t){let r=e.report.models.map(o=>{let{role:a,confidence:s}=o.roles[t],i=n("i",{class:"dot",style:`background: ${k(a)}`});return n("span",{},i,` ${o.name}: ${a} (${s.toFixed(2)})`)});return n("p",{class:"roleline"},...r)}function me(e,t){let{models:r,statistics:o}=e.report,a=o.map(i=>n("tr",{},n("th",{},i.label),...r.map(l=>n("td",{},g(l.statistics[t]?.[i.name]))))),s=n("tr",{},n("th",{}),...r.map(i=>n("th",{},i.name)));return n("table",{class:"numbers"},n("thead",{},s),n("tbody",{},...a))}function pe(e,t){let r=(o,a,s)=>{let i=n("button",{type:"button","aria-label":o,title:o},a);return i.addEventListener("click",s),i};return n("header",{},n("h2",{id:"detail-title"},t),r("previous head (left arrow)","\u2190",()=>z(e,-1)),r("next head (right arrow)","\u2192",()=>z(e,1)),r("close (Escape)","\xD7",()=>h({head:null})))}function W(e){let t=n("dialog",{id:"detail","aria-labelledby":"detail-title"}),{models:r}=e.report,o=0,a=async()=>{let s=++o,{head:i,prompt:l}=x();if(i===null)return t.close();let d=await e.maps(l);if(s!==o)return;let c=d.map(p=>p[i]),m=e.report.prompts[l].tokens,u=r.length===2?3:1,b=Math.max(180,Math.min(520,(window.innerWidth-120)/u-90)),v=n("output",{class:"readout",id:"readout"}),B="Point at a cell: rows are queries, columns are keys.";v.textContent=B;let H=[],D=p=>{for(let y of H)y.draw(p);if(!p)return void(v.textContent=B);let w=r.map((y,I)=>`${y.name} ${g(c[I].at(p.query,p.key),4)}`);v.textContent=`query ${p.query} \u201C${M(m[p.query])}\u201D \u2192 key ${p.key} \u201C${M(m[p.key])}\u201D: ${w.join(", ")}`};if(r.forEach((p,w)=>H.push(new P(p.name,"weights 0 to 1",`model-${w}`,m,b,(y,I)=>$(c[w].at(y,I)),D))),r.length===2){let p=ce(c[0],c[1])||1;H.push(new P("difference",`${r[1].name} less ${r[0].name}, \xB1${g(p,2)}`,"difference",m,b,(w,y)=>S((c[1].at(w,y)-c[0].at(w,y))/p),D))}let G=[0,.001,.25,.5,.75,1].map(p=>n("span",{style:`background: ${U($(p))}`},p===.001?">0":String(p)));t.replaceChildren(pe(e,`Head ${f(r[0],i)}`),de(e,i),n("div",{class:"row"},...H.map(p=>p.root)),v,n("div",{class:"ramp","aria-label":"scale of weights"},...G),me(e,i)),t.open||t.showModal()};return L((s,i)=>{(s.head!==i.head||s.prompt!==i.prompt)&&a()}),t.addEventListener("close",()=>h({head:null})),t.addEventListener("click",s=>{s.target===t&&h({head:null})}),document.addEventListener("keydown",s=>{x().head!==null&&(s.key==="ArrowLeft"&&z(e,-1),s.key==="ArrowRight"&&z(e,1))}),t}var K=96,ue=20;function he(e){return R(e.size,e.size,(t,r)=>r>t?null:$(e.at(t,r)))}function ge(e,t,r){let o=t.roles.map((a,s)=>s);return r==="importance"&&e.report.importance?e.report.importance:(r==="role"&&o.sort((a,s)=>t.roles[a].role.localeCompare(t.roles[s].role)),o)}function fe(e,t,r,o){let{role:a,confidence:s}=e.roles[r],i=f(e,r),l=E(K,K);A(l,he(o));let d=n("button",{class:"head",type:"button","data-model":String(t),"data-head":i,"aria-label":`${i} of ${e.name}: ${a}`,title:`${i} \u2013 ${a} (${s.toFixed(2)})`,style:`--role: ${k(a)}`},l,n("span",{class:"label"},i));return d.addEventListener("click",()=>h({head:r})),d}function X(e){let t=e.report.models.map(a=>{let s=n("div",{class:"maps"}),i=a.facts.map(([d,c])=>`${d} ${c}`).join(" \xB7 ");return{panel:n("section",{class:"panel"},n("h2",{},a.name),n("p",{class:"facts"},i),s),maps:s}}),r=0,o=async()=>{let a=++r,{prompt:s,order:i}=x(),l=await e.maps(s);a===r&&e.report.models.forEach((d,c)=>{let m=ge(e,d,i),u=i==="layer"&&d.heads<=ue;t[c].maps.classList.toggle("by-layer",u),t[c].maps.style.setProperty("--heads",String(d.heads)),t[c].maps.replaceChildren(...m.map(b=>fe(d,c,b,l[c][b])))})};return L((a,s)=>{(a.prompt!==s.prompt||a.order!==s.order)&&o()}),o(),n("div",{class:"grid",id:"grid"},...t.map(({panel:a})=>a))}var Y=400;function be(e,t,r){let o=t.matrix.length,a=r?t.order:t.order.map((c,m)=>m),s=E(Y,Y),i=(c,m)=>t.matrix[a[c]][a[m]]??null;A(s,R(o,o,(c,m)=>{let u=i(c,m);return u===null?null:S(u)}));let l=n("output",{class:"readout"}),d=c=>{let m=s.getBoundingClientRect(),u=(b,v)=>Math.min(o-1,Math.max(0,Math.floor(b/v*o)));return[u(c.clientY-m.top,m.height),u(c.clientX-m.left,m.width)]};return s.addEventListener("pointermove",c=>{let[m,u]=d(c),b=[a[m],a[u]].map(v=>f(e,v));l.textContent=`${b.join(" and ")}: ${g(i(m,u),3)}`}),s.addEventListener("pointerleave",()=>l.textContent=""),s.addEventListener("click",c=>h({head:a[d(c)[0]]})),n("figure",{},n("figcaption",{},e.name),s,l)}function J(e){let{models:t,pairs:r}=e.report,o=r[0]?.map(d=>d.measure)??[];if(o.length===0)return null;let a=n("div",{class:"row"}),s=n("select",{"aria-label":"correlation"});s.append(...o.map((d,c)=>n("option",{value:String(c)},d)));let i=n("input",{type:"checkbox",id:"clustered",checked:""}),l=()=>a.replaceChildren(...t.map((d,c)=>be(d,r[c][Number(s.value)],i.checked)));return s.addEventListener("change",l),i.addEventListener("change",l),l(),n("section",{id:"pairs",class:"plain"},n("h2",{},"Head pairs"),n("p",{class:"facts"},s," ",i,n("label",{for:"clustered"}," ordered by clustering; "),"blue is -1, white 0, orange 1"),a)}function ve(e){let t=new Map;for(let{role:r}of e.roles)t.set(r,(t.get(r)??0)+1);return t}function ye(e){let t=e.map(ve),r=[...new Set(t.flatMap(i=>[...i.keys()]))],o=i=>t.reduce((l,d)=>l+(d.get(i)??0),0);r.sort((i,l)=>o(l)-o(i)||i.localeCompare(l));let a=r.map(i=>{let l=n("i",{class:"dot",style:`background: ${k(i)}`}),d=t.map(c=>n("td",{},String(c.get(i)??0)));return n("tr",{},n("th",{},l,` ${i}`),...d)}),s=n("tr",{},n("th",{},"role"),...e.map(i=>n("th",{},i.name)));return n("table",{},n("thead",{},s),n("tbody",{},...a))}function xe(e){let t=Array.from({length:e.layers},(r,o)=>{let a=Array.from({length:e.heads},(s,i)=>{let l=o*e.heads+i,{role:d,confidence:c}=e.roles[l],m=`${f(e,l)} \u2013 ${d} (${c.toFixed(2)})`,u=n("button",{type:"button",title:m,"aria-label":`${m}, ${e.name}`,style:`background: ${k(d)}; opacity: ${.35+.65*c}`});return u.addEventListener("click",()=>h({head:l})),n("td",{},u)});return n("tr",{},n("th",{},`L${o}`),...a)});return n("figure",{},n("figcaption",{},e.name),n("table",{class:"layout"},n("tbody",{},...t)))}function Q(e){let{models:t}=e.report;return n("section",{id:"roles",class:"plain"},n("h2",{},"Head roles"),n("div",{class:"row"},ye(t),...t.map(xe)))}function V(e,t){return e==null?g(e):t==="%"?`${g(100*e,2)} %`:g(e)}function we(e){let t=Math.max(...e.values.map(o=>Math.abs(o)),1e-12),r=e.values.map((o,a)=>n("i",{class:`bar model-${a}`,style:`width: ${100*Math.abs(o)/t}%`}));return n("td",{class:"bars"},...r)}function Z(e){let{models:t,statistics:r}=e.report;if(r.length===0)return null;let o=r.some(i=>i.change!=null),a=[n("th",{},"statistic"),...t.map(i=>n("th",{},i.name)),n("th",{},""),...o?[n("th",{},"change"),n("th",{},"95 % interval"),n("th",{},"p")]:[]],s=r.map(i=>n("tr",{},n("th",{},i.label),...i.values.map(l=>n("td",{},V(l,i.unit))),we(i),...o?[n("td",{},V(i.change,i.unit)),n("td",{},`${V(i.low,i.unit)} to ${V(i.high,i.unit)}`),n("td",{},g(i.p,4))]:[]));return n("section",{id:"statistics",class:"plain"},n("h2",{},"Statistics"),n("table",{class:"statistics"},n("thead",{},n("tr",{},...a)),n("tbody",{},...s)),o?n("p",{class:"facts"},"Means over heads. Interval: paired bootstrap over prompts; p: paired permutation test."):null)}function ke(e){let t=n("select",{id:"prompt","aria-label":"prompt"});return e.report.prompts.forEach((r,o)=>{let a=r.text.length>90?`${r.text.slice(0,88)}\u2026`:r.text;t.append(n("option",{value:String(o)},M(a).replace(/\u00b7/g," ")))}),t.addEventListener("change",()=>h({prompt:Number(t.value)})),L(r=>t.value=String(r.prompt)),n("label",{},"prompt ",t)}function Le(e){let t=n("select",{id:"order","aria-label":"order of heads"}),r=e.report.importance?["layer","role","importance"]:["layer","role"];for(let o of r)t.append(n("option",{value:o},`by ${o}`));return t.addEventListener("change",()=>h({order:t.value})),n("label",{},"heads ",t)}function Me(){let e=n("button",{type:"button",id:"theme"},"light / dark");return e.addEventListener("click",()=>{let t=document.documentElement,r=t.dataset.theme?t.dataset.theme==="dark":matchMedia("(prefers-color-scheme: dark)").matches;t.dataset.theme=r?"light":"dark"}),e}function Ee(e){let t=e.report.made.flatMap(([r,o])=>[n("dt",{},r),n("dd",{},n("code",{},o))]);return n("section",{id:"made",class:"plain"},n("h2",{},"How this was made"),n("dl",{},...t))}function Re(e){let t=e.report.models[0],r=()=>{let o=/^#L(\d+)H(\d+)$/.exec(location.hash);if(!o)return;let[a,s]=[Number(o[1]),Number(o[2])];a<t.layers&&s<t.heads&&h({head:a*t.heads+s})};L((o,a)=>{if(o.head===a.head)return;let s=o.head===null?"":`#${f(t,o.head)}`;history.replaceState(null,"",location.pathname+location.search+s)}),addEventListener("hashchange",r),r()}function $e(e){let{report:t}=e;document.title=t.title;let r=[Q(e),Z(e),J(e),Ee(e)],o=[n("a",{href:"#grid"},"maps")];for(let s of r)s&&o.push(n("a",{href:`#${s.id}`},s.querySelector("h2").textContent.toLowerCase()));let a=n("header",{class:"top"},n("h1",{},t.title),n("nav",{},...o),n("div",{class:"choices"},ke(e),Le(e),Me()));document.body.replaceChildren(a,n("main",{},X(e),...r.filter(s=>s!==null)),W(e)),Re(e),document.body.dataset.ready=String(x().prompt>=0)}document.head.append(n("style",{},j));try{$e(F())}catch(e){document.body.replaceChildren(n("p",{class:"failure"},e instanceof Error?e.message:String(e)))}})();
