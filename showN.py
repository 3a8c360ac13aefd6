import contention_lab as cl, sys
from collections import Counter
for f in sys.argv[1:]:
    t=cl.load(f); print(f,t.problems,t.meta.get('native_layer'), 'waits',len(t.native_waits),'locks',len(t.native.locks))
    c=Counter(); n=Counter()
    for w in t.native_waits:
        l=t.native.locks.get(int(w['lock'])); k=(l.kind.type_name,l.label,hex(l.address),int(w['flags'])&2)
        c[k]+=int(w['end_ns']-w['start_ns'])/1e9; n[k]+=1
    for k,v in c.most_common(8): print(round(v,4),n[k],k)
    for w in sorted(t.native_waits,key=lambda w:int(w['start_ns'])-int(w['end_ns']) if not int(w['flags'])&2 else 0)[:4]:
        print(t.thread(int(w['thread'])).name,int(w['native_id']),'holder',int(w['holder']),(w['end_ns']-w['start_ns'])/1e6,'ms',[x.label for x in t.native_stack(int(w['native_stack']))][:6],[x.function for x in t.stack(int(w['stack']))][:4], int(w['flags']))
    for w in [w for w in t.native_waits if int(w['flags'])&2][:3]:
        print('REL',t.thread(int(w['thread'])).name,(w['end_ns']-w['start_ns'])/1e6,'ms',[x.label for x in t.native_stack(int(w['native_stack']))][:6],[x.function for x in t.stack(int(w['stack']))][:4], int(w['flags']))
