// Records how Grafana's own code reads an answer for the tables of a dashboard, for tests/dashboards/test_grafana.py:
//   npm install --legacy-peer-deps --ignore-scripts @grafana/data @grafana/prometheus react react-dom rxjs jsdom
//   node record_frames.cjs sidejudge-overview.json > tests/data/grafana/overview.json     (beside node_modules)
const Module=require('module'); const load=Module._load;
Module._load=function(name,...rest){ try{ return load.call(this,name,...rest);}catch(e){ if(e.code==='MODULE_NOT_FOUND' && !name.startsWith('.')) return new Proxy(function(){}, {get:(t,k)=> k==='__esModule'?true: function(){return {datasources:{},getDataSourceSrv:()=>({getInstanceSettings(){return undefined}})}}}); throw e; } };
const {JSDOM}=require('jsdom'); const w=new JSDOM('<!doctype html><html><body></body></html>',{url:'http://x/'}).window;
for (const k of Object.getOwnPropertyNames(w)) if(!(k in globalThis)) { try{ globalThis[k]=w[k]; }catch(e){} }
for (const k of ['addEventListener','removeEventListener','dispatchEvent','getComputedStyle']) globalThis[k]=w[k].bind(w);
globalThis.window=globalThis; globalThis.document=w.document; globalThis.location=w.location; globalThis.grafanaBootData={settings:{},user:{}}; globalThis.matchMedia=()=>({matches:false,addListener(){},addEventListener(){}});
const d=require('@grafana/data');
const T=require('./node_modules/@grafana/prometheus/dist/cjs/result_transformer.cjs');
const fs=require('fs'); const rx=require('rxjs');
const board=JSON.parse(fs.readFileSync(process.argv[2])); 
d.standardTransformersRegistry.setInit(()=>[...new Map(Object.values(d.standardTransformers).map(t=>[t.id,t])).values()].map(t=>({id:t.id,transformation:()=>Promise.resolve(t),name:t.name,aliasIds:t.aliasIds})));
const labels={cluster:'east',namespace:'shop',job:'sidejudge',service:'check out',environment:'prod',rubric:'qa'};
const alert={alertname:'SidejudgePassRateCritical',alertstate:'firing',severity:'critical',runbook:'pass-rate-critical',...labels};
const out={};
(async()=>{
for(const panel of board.panels.filter(p=>p.type==='table')){
  const targets=panel.targets.map(t=>({...t}));
  // what the server's data source answers an instant query with, one frame a series
  const frames=targets.flatMap(t=>[labels,{...labels,namespace:'other'}].map((l,i)=>d.toDataFrame({refId:t.refId,meta:{type:'numeric-multi',custom:{resultType:'vector'},executedQueryString:t.expr},fields:[{name:'Time',type:'time',values:[1]},{name:'Value',type:'number',labels:t.expr.includes('ALERTS')?{...alert,namespace:l.namespace}:l,values:[i+1]}]})));
  let res=T.transformV2({data:frames,state:'Done'},{targets,app:'dashboard'},{}).data;
  const done=await rx.firstValueFrom(d.transformDataFrame(panel.transformations,res));
  out[panel.title]=done.map(f=>({fields:f.fields.map(x=>({name:x.name,displayName:x.config.displayName??null,labels:x.labels??null,values:[...x.values]}))}));
}
console.log(JSON.stringify(out,null,1));
})();
