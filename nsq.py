import sqlite3, threading, tempfile, os, time
db=sqlite3.connect(':memory:',check_same_thread=False)
db.execute('create table t(a,b)'); 
db.executemany('insert into t values(?,?)',[(i,i*7%1000) for i in range(20000)])
def work():
    for _ in range(10):
        db.execute('select count(*) from t x where b>500 and a in (select a from t where b<900)').fetchall()
ts=[threading.Thread(target=work) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
