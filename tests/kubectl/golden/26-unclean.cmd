explain
explain -f -
{"apiVersion": "v1", "kind": "\u001b[31mPod\u009b\u202e", "metadata": {"name": "\u001b]0;x\u0007"}}
