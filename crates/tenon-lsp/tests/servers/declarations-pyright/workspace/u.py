import json
from m import Base, pick, count

b = Base()
b.filter(3)
pick(1)
pick("a")
print(count, b.limit, json.dumps({}))
