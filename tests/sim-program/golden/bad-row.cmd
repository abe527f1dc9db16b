replay --nodes trace/nodes.csv --pods -
gpu_milli,num_gpu,memory_mib,cpu_milli,name
1000,1,1024,1000,good
460.5,1,1024,1000,bad
