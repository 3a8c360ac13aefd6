import contention_lab as cl, sys
t=cl.load(sys.argv[1])
for th in t.threads.values():
    if not th.name.startswith('w'): continue
    ev=[(int(w['start_ns']),int(w['end_ns']),'W',int(w['flags'])) for w in t.gil_waits if w['thread']==th.id]+[(int(w['start_ns']),int(w['end_ns']),'H',int(w['flags'])) for w in t.gil_holds if w['thread']==th.id]
    ev.sort(); last=th.start_ns; g=[]
    for e in ev:
        if e[0]-last>300000: g.append((round((e[0]-last)/1e6,2),round((e[0])/1e6,2),e[2:]))
        last=max(last,e[1])
    print(th.name, th.start_ns/1e6, 'end gap', ((th.end_ns or t.duration_ns)-last)/1e6, g)
    print(ev[:12])
