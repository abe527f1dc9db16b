quota
top -o gpushare
