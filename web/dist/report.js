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
@media (min-width: 1100px) {
  .grid.beside { display: grid; grid-template-columns: 1fr 1fr; gap: 1.1rem; }
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
h3 { font-size: 1rem; margin: 1rem 0 0; }
.drawn img { display: block; max-width: 100%; background: #fff; border: 1px solid var(--line); border-radius: 8px; }
.failure { padding: 2rem; }
`;var q=class{constructor(t,r,o){this.size=t;this.cells=r;this.start=o}size;cells;start;at(t,r){return r>t?0:this.cells[this.start+t*(t+1)/2+r]/65535}};async function re(e){let t=Uint8Array.from(atob(e),o=>o.charCodeAt(0)),r=new Blob([t]).stream().pipeThrough(new DecompressionStream("deflate"));return new Response(r).arrayBuffer()}async function ne(e,t,r){let o=new DataView(await re(e)),s=new Uint16Array(o.byteLength/2);for(let a=0;a<s.length;++a)s[a]=o.getUint16(2*a,!0);let i=r*(r+1)/2;if(s.length!==t*i)throw new Error(`the report holds ${s.length} weights where ${t*i} were expected`);return Array.from({length:t},(a,l)=>new q(r,s,l*i))}var N=class{constructor(t){this.report=t}report;unpacked=new Map;maps(t){let r=this.unpacked.get(t);if(!r){let{tokens:o,maps:s}=this.report.prompts[t];r=Promise.all(this.report.models.map((i,a)=>ne(s[a],i.layers*i.heads,o.length))),this.unpacked.set(t,r)}return r}};function F(){let e=document.getElementById("filigree-data");if(!e?.textContent)throw new Error("this page holds no report");let t=JSON.parse(e.textContent);if(t.format!=="filigree-report-1")throw new Error(`this viewer does not know the format '${t.format}'`);return new N(t)}function b(e,t){return`L${Math.floor(t/e.heads)}H${t%e.heads}`}function M(e){return e.replace(/ /g,"\xB7").replace(/\n/g,"\u23CE").replace(/\t/g,"\u21E5")||"\u2205"}function B(e,t){let r=Math.min(Math.max(t,0),1)*(e.length-1),o=Math.min(Math.floor(r),e.length-2),s=e[o],i=e[o+1],a=r-o;return[s[0]+a*(i[0]-s[0]),s[1]+a*(i[1]-s[1]),s[2]+a*(i[2]-s[2])]}var oe=[[232,240,250],[158,202,225],[66,146,198],[8,81,156],[8,34,82]],ae=[255,255,255];function $(e){return e===0?ae:B(oe,e)}var ie=[[255,255,255],[146,197,222],[8,64,129]],se=[[255,255,255],[253,174,107],[140,45,4]];function S(e){return e<0?B(ie,-e):B(se,e)}function U(e){return`rgb(${e.map(t=>Math.round(t)).join(" ")})`}var le={sink:"#d55e00",current:"#0072b2",previous:"#009e73",offset:"#cc79a7",diffuse:"#e69f00",stripes:"#56b4e9",fragmented:"#882255",empty:"#999933",induction:"#b8b8b8",duplicate:"#332288"};function k(e){return le[e.split(/[+ ]/)[0]]??"#4d4d4d"}function n(e,t={},...r){let o=document.createElement(e);for(let[s,i]of Object.entries(t))o.setAttribute(s,i);return o.append(...r.filter(s=>s!=null)),o}function E(e,t){let r=n("canvas");return ce(r,e,t),r}function ce(e,t,r){let o=window.devicePixelRatio||1;e.width=Math.round(t*o),e.height=Math.round(r*o),e.style.width=`${t}px`,e.style.height=`${r}px`}function C(e){let t=e.getContext("2d");if(!t)throw new Error("this browser has no canvas");return t}function f(e,t=3){return e==null||!Number.isFinite(e)?"\u2013":e!==0&&Math.abs(e)<10**-t?e.toExponential(1):e.toFixed(t)}function R(e,t,r){let o=document.createElement("canvas");o.width=t,o.height=e;let s=new ImageData(t,e);for(let i=0;i<e;++i)for(let a=0;a<t;++a){let l=r(i,a);if(l===null)continue;let m=4*(i*t+a);s.data[m]=l[0],s.data[m+1]=l[1],s.data[m+2]=l[2],s.data[m+3]=255}return C(o).putImageData(s,0,0),o}function A(e,t){let r=C(e);r.imageSmoothingEnabled=t.width>e.width,r.imageSmoothingQuality="high",r.clearRect(0,0,e.width,e.height),r.drawImage(t,0,0,e.width,e.height)}var T={prompt:0,order:"layer",head:null},_=[];function x(){return T}function h(e){let t=T;T={...T,...e};for(let r of _)r(T,t)}function L(e){_.push(e)}var P=class{constructor(t,r,o,s,i,a,l){this.tokens=s;let m=i/s.length>=9;this.margin=m?78:8,this.side=i;let d=i+this.margin;this.canvas=E(d,d),this.canvas.dataset.map=o,this.picture=R(s.length,s.length,(c,u)=>u>c?null:a(c,u)),this.canvas.addEventListener("pointermove",c=>l(this.cellAt(c))),this.canvas.addEventListener("pointerleave",()=>l(null)),this.root=n("figure",{class:"large"},n("figcaption",{},n("b",{},t),` ${r}`),this.canvas),this.draw(null)}tokens;root;canvas;picture;margin;side;cellAt(t){let r=this.canvas.getBoundingClientRect(),o=this.tokens.length,s=Math.floor((t.clientX-r.left-this.margin)/this.side*o),i=Math.floor((t.clientY-r.top)/this.side*o);return s<0||i>=o||s>i?null:{query:i,key:s}}draw(t){let r=C(this.canvas),o=getComputedStyle(document.documentElement),s=o.getPropertyValue("--ink")||"#000",i=o.getPropertyValue("--faint")||"#888";r.setTransform(1,0,0,1,0,0),r.clearRect(0,0,this.canvas.width,this.canvas.height);let a=this.canvas.width/(this.side+this.margin);r.scale(a,a);let{side:l,margin:m}=this,d=this.tokens.length,c=l/d;r.imageSmoothingEnabled=!1,r.drawImage(this.picture,m,0,l,l),r.strokeStyle=i,r.lineWidth=1,r.beginPath(),r.moveTo(m,0),r.lineTo(m,l),r.lineTo(m+l,l),r.stroke(),m>8&&this.labels(r,t,s,i),t&&(r.strokeStyle="#d55e00",r.lineWidth=1.5,r.strokeRect(m+t.key*c,t.query*c,c,c))}labels(t,r,o,s){let{side:i,margin:a}=this,l=i/this.tokens.length;t.font=`${Math.min(12,l*.95)}px system-ui, sans-serif`,t.textBaseline="middle",t.textAlign="right";let m=d=>{let c=M(d);return c.length>11?`${c.slice(0,10)}\u2026`:c};this.tokens.forEach((d,c)=>{t.fillStyle=!r||r.query===c?o:s,t.fillText(m(d),a-5,(c+.5)*l),t.save(),t.translate(a+(c+.5)*l,i+5),t.rotate(-Math.PI/2),t.fillStyle=!r||r.key===c?o:s,t.fillText(m(d),0,0),t.restore()})}};function de(e,t){let r=0;for(let o=0;o<e.size;++o)for(let s=0;s<=o;++s)r=Math.max(r,Math.abs(t.at(o,s)-e.at(o,s)));return r}function z(e,t){let{head:r}=x(),o=e.report.models[0].roles.length;r!==null&&h({head:(r+t+o)%o})}function me(e,t){let r=e.report.models.map(o=>{let{role:s,confidence:i}=o.roles[t],a=n("i",{class:"dot",style:`background: ${k(s)}`});return n("span",{},a,` ${o.name}: ${s} (${i.toFixed(2)})`)});return n("p",{class:"roleline"},...r)}function pe(e,t){let{models:r,statistics:o}=e.report,s=o.map(a=>n("tr",{},n("th",{},a.label),...r.map(l=>n("td",{},f(l.statistics[t]?.[a.name]))))),i=n("tr",{},n("th",{}),...r.map(a=>n("th",{},a.name)));return n("table",{class:"numbers"},n("thead",{},i),n("tbody",{},...s))}function ue(e,t){let r=(o,s,i)=>{let a=n("button",{type:"button","aria-label":o,title:o},s);return a.addEventListener("click",i),a};return n("header",{},n("h2",{id:"detail-title"},t),r("previous head (left arrow)","\u2190",()=>z(e,-1)),r("next head (right arrow)","\u2192",()=>z(e,1)),r("close (Escape)","\xD7",()=>h({head:null})))}function W(e){let t=n("dialog",{id:"detail","aria-labelledby":"detail-title"}),{models:r}=e.report,o=0,s=async()=>{let i=++o,{head:a,prompt:l}=x();if(a===null)return t.close();let m=await e.maps(l);if(i!==o)return;let d=m.map(p=>p[a]),c=e.report.prompts[l].tokens,u=r.length===2?3:1,v=Math.max(180,Math.min(520,(window.innerWidth-120)/u-90)),g=n("output",{class:"readout",id:"readout"}),O="Point at a cell: rows are queries, columns are keys.";g.textContent=O;let H=[],D=p=>{for(let y of H)y.draw(p);if(!p)return void(g.textContent=O);let w=r.map((y,I)=>`${y.name} ${f(d[I].at(p.query,p.key),4)}`);g.textContent=`query ${p.query} \u201C${M(c[p.query])}\u201D \u2192 key ${p.key} \u201C${M(c[p.key])}\u201D: ${w.join(", ")}`};if(r.forEach((p,w)=>H.push(new P(p.name,"weights 0 to 1",`model-${w}`,c,v,(y,I)=>$(d[w].at(y,I)),D))),r.length===2){let p=de(d[0],d[1])||1;H.push(new P("difference",`${r[1].name} less ${r[0].name}, \xB1${f(p,2)}`,"difference",c,v,(w,y)=>S((d[1].at(w,y)-d[0].at(w,y))/p),D))}let ee=[0,.001,.25,.5,.75,1].map(p=>n("span",{style:`background: ${U($(p))}`},p===.001?">0":String(p)));t.replaceChildren(ue(e,`Head ${b(r[0],a)}`),me(e,a),n("div",{class:"row"},...H.map(p=>p.root)),g,n("div",{class:"ramp","aria-label":"scale of weights"},...ee),pe(e,a)),t.open||t.showModal()};return L((i,a)=>{(i.head!==a.head||i.prompt!==a.prompt)&&s()}),t.addEventListener("close",()=>h({head:null})),t.addEventListener("click",i=>{i.target===t&&h({head:null})}),document.addEventListener("keydown",i=>{x().head!==null&&(i.key==="ArrowLeft"&&z(e,-1),i.key==="ArrowRight"&&z(e,1))}),t}var K=96,he=20,ge=6;function fe(e){return R(e.size,e.size,(t,r)=>r>t?null:$(e.at(t,r)))}function be(e,t,r){let o=t.roles.map((s,i)=>i);return r==="importance"&&e.report.importance?e.report.importance:(r==="role"&&o.sort((s,i)=>t.roles[s].role.localeCompare(t.roles[i].role)),o)}function ve(e,t,r,o){let{role:s,confidence:i}=e.roles[r],a=b(e,r),l=E(K,K);A(l,fe(o));let m=n("button",{class:"head",type:"button","data-model":String(t),"data-head":a,"aria-label":`${a} of ${e.name}: ${s}`,title:`${a} \u2013 ${s} (${i.toFixed(2)})`,style:`--role: ${k(s)}`},l,n("span",{class:"label"},a));return m.addEventListener("click",()=>h({head:r})),m}function X(e){let t=e.report.models.map(i=>{let a=n("div",{class:"maps"}),l=i.facts.map(([d,c])=>`${d} ${c}`).join(" \xB7 ");return{panel:n("section",{class:"panel"},n("h2",{},i.name),n("p",{class:"facts"},l),a),maps:a}}),r=0,o=async()=>{let i=++r,{prompt:a,order:l}=x(),m=await e.maps(a);i===r&&e.report.models.forEach((d,c)=>{let u=be(e,d,l),v=l==="layer"&&d.heads<=he;t[c].maps.classList.toggle("by-layer",v),t[c].maps.style.setProperty("--heads",String(d.heads)),t[c].maps.replaceChildren(...u.map(g=>ve(d,c,g,m[c][g])))})};L((i,a)=>{(i.prompt!==a.prompt||i.order!==a.order)&&o()}),o();let s=e.report.models.every(i=>i.heads<=ge);return n("div",{class:s?"grid beside":"grid",id:"grid"},...t.map(({panel:i})=>i))}var Y=400;function ye(e,t,r){let o=t.matrix.length,s=r?t.order:t.order.map((d,c)=>c),i=E(Y,Y),a=(d,c)=>t.matrix[s[d]][s[c]]??null;A(i,R(o,o,(d,c)=>{let u=a(d,c);return u===null?null:S(u)}));let l=n("output",{class:"readout"}),m=d=>{let c=i.getBoundingClientRect(),u=(v,g)=>Math.min(o-1,Math.max(0,Math.floor(v/g*o)));return[u(d.clientY-c.top,c.height),u(d.clientX-c.left,c.width)]};return i.addEventListener("pointermove",d=>{let[c,u]=m(d),v=[s[c],s[u]].map(g=>b(e,g));l.textContent=`${v.join(" and ")}: ${f(a(c,u),3)}`}),i.addEventListener("pointerleave",()=>l.textContent=""),i.addEventListener("click",d=>h({head:s[m(d)[0]]})),n("figure",{},n("figcaption",{},e.name),i,l)}function J(e){let{models:t,pairs:r}=e.report,o=r[0]?.map(m=>m.measure)??[];if(o.length===0)return null;let s=n("div",{class:"row"}),i=n("select",{"aria-label":"correlation"});i.append(...o.map((m,d)=>n("option",{value:String(d)},m)));let a=n("input",{type:"checkbox",id:"clustered",checked:""}),l=()=>s.replaceChildren(...t.map((m,d)=>ye(m,r[d][Number(i.value)],a.checked)));return i.addEventListener("change",l),a.addEventListener("change",l),l(),n("section",{id:"pairs",class:"plain"},n("h2",{},"Head pairs"),n("p",{class:"facts"},i," ",a,n("label",{for:"clustered"}," ordered by clustering; "),"blue is -1, white 0, orange 1"),s)}function xe(e){let t=new Map;for(let{role:r}of e.roles)t.set(r,(t.get(r)??0)+1);return t}function we(e){let t=e.map(xe),r=[...new Set(t.flatMap(a=>[...a.keys()]))],o=a=>t.reduce((l,m)=>l+(m.get(a)??0),0);r.sort((a,l)=>o(l)-o(a)||a.localeCompare(l));let s=r.map(a=>{let l=n("i",{class:"dot",style:`background: ${k(a)}`}),m=t.map(d=>n("td",{},String(d.get(a)??0)));return n("tr",{},n("th",{},l,` ${a}`),...m)}),i=n("tr",{},n("th",{},"role"),...e.map(a=>n("th",{},a.name)));return n("table",{},n("thead",{},i),n("tbody",{},...s))}function ke(e){let t=Array.from({length:e.layers},(r,o)=>{let s=Array.from({length:e.heads},(i,a)=>{let l=o*e.heads+a,{role:m,confidence:d}=e.roles[l],c=`${b(e,l)} \u2013 ${m} (${d.toFixed(2)})`,u=n("button",{type:"button",title:c,"aria-label":`${c}, ${e.name}`,style:`background: ${k(m)}; opacity: ${.35+.65*d}`});return u.addEventListener("click",()=>h({head:l})),n("td",{},u)});return n("tr",{},n("th",{},`L${o}`),...s)});return n("figure",{},n("figcaption",{},e.name),n("table",{class:"layout"},n("tbody",{},...t)))}function Q(e){let{models:t}=e.report;return n("section",{id:"roles",class:"plain"},n("h2",{},"Head roles"),n("div",{class:"row"},we(t),...t.map(ke)))}function V(e,t){return e==null?f(e):t==="%"?`${f(100*e,2)} %`:f(e)}function Le(e){let t=Math.max(...e.values.map(o=>Math.abs(o)),1e-12),r=e.values.map((o,s)=>n("i",{class:`bar model-${s}`,style:`width: ${100*Math.abs(o)/t}%`}));return n("td",{class:"bars"},...r)}function Z(e){let{models:t,statistics:r}=e.report;if(r.length===0)return null;let o=r.some(a=>a.change!=null),s=[n("th",{},"statistic"),...t.map(a=>n("th",{},a.name)),n("th",{},""),...o?[n("th",{},"change"),n("th",{},"95 % interval"),n("th",{},"p")]:[]],i=r.map(a=>n("tr",{},n("th",{},a.label),...a.values.map(l=>n("td",{},V(l,a.unit))),Le(a),...o?[n("td",{},V(a.change,a.unit)),n("td",{},`${V(a.low,a.unit)} to ${V(a.high,a.unit)}`),n("td",{},f(a.p,4))]:[]));return n("section",{id:"statistics",class:"plain"},n("h2",{},"Statistics"),n("table",{class:"statistics"},n("thead",{},n("tr",{},...s)),n("tbody",{},...i)),o?n("p",{class:"facts"},"Means over heads. Interval: paired bootstrap over prompts; p: paired permutation test."):null)}function Me(e){return e.rows.length===0?null:n("table",{},n("thead",{},n("tr",{},...e.columns.map(t=>n("th",{},t)))),n("tbody",{},...e.rows.map(([t,...r])=>n("tr",{},n("th",{},t),...r.map(o=>n("td",{},o))))))}function Ee(e){let t=e.figures.map(r=>n("figure",{class:"drawn"},n("figcaption",{},n("b",{},r.title),` ${r.caption}`),n("img",{src:`data:image/svg+xml;base64,${r.svg}`,alt:r.title})));return n("article",{class:"task"},n("h3",{},e.name),n("p",{class:"facts"},[e.description,...e.facts.map(([r,o])=>`${r}: ${o}`)].join(" \xB7 ")),Me(e),n("div",{class:"row"},...t))}function G(e){let t=e.report.tasks??[];return t.length===0?null:n("section",{id:"tasks",class:"plain"},n("h2",{},"Tasks"),...t.map(Ee))}function Re(e){let t=n("select",{id:"prompt","aria-label":"prompt"});return e.report.prompts.forEach((r,o)=>{let s=r.text.length>90?`${r.text.slice(0,88)}\u2026`:r.text;t.append(n("option",{value:String(o)},M(s).replace(/\u00b7/g," ")))}),t.addEventListener("change",()=>h({prompt:Number(t.value)})),L(r=>t.value=String(r.prompt)),n("label",{},"prompt ",t)}function $e(e){let t=n("select",{id:"order","aria-label":"order of heads"}),r=e.report.importance?["layer","role","importance"]:["layer","role"];for(let o of r)t.append(n("option",{value:o},`by ${o}`));return t.addEventListener("change",()=>h({order:t.value})),n("label",{},"heads ",t)}function Ce(){let e=n("button",{type:"button",id:"theme"},"light / dark");return e.addEventListener("click",()=>{let t=document.documentElement,r=t.dataset.theme?t.dataset.theme==="dark":matchMedia("(prefers-color-scheme: dark)").matches;t.dataset.theme=r?"light":"dark"}),e}function Te(e){let t=e.report.made.flatMap(([r,o])=>[n("dt",{},r),n("dd",{},n("code",{},o))]);return n("section",{id:"made",class:"plain"},n("h2",{},"How this was made"),n("dl",{},...t))}function He(e){let t=e.report.models[0],r=()=>{let o=/^#L(\d+)H(\d+)$/.exec(location.hash);if(!o)return;let[s,i]=[Number(o[1]),Number(o[2])];s<t.layers&&i<t.heads&&h({head:s*t.heads+i})};L((o,s)=>{if(o.head===s.head)return;let i=o.head===null?"":`#${b(t,o.head)}`;history.replaceState(null,"",location.pathname+location.search+i)}),addEventListener("hashchange",r),r()}function Se(e){let{report:t}=e;document.title=t.title;let r=[Q(e),Z(e),G(e),J(e),Te(e)],o=[n("a",{href:"#grid"},"maps")];for(let i of r)i&&o.push(n("a",{href:`#${i.id}`},i.querySelector("h2").textContent.toLowerCase()));let s=n("header",{class:"top"},n("h1",{},t.title),n("nav",{},...o),n("div",{class:"choices"},Re(e),$e(e),Ce()));document.body.replaceChildren(s,n("main",{},X(e),...r.filter(i=>i!==null)),W(e)),He(e),document.body.dataset.ready=String(x().prompt>=0)}document.head.append(n("style",{},j));try{Se(F())}catch(e){document.body.replaceChildren(n("p",{class:"failure"},e instanceof Error?e.message:String(e)))}})();
