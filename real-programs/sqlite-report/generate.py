"""Writes work.sql: SIZE sales in a database in memory, an index, reports, updates and deletions."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
size = int(sys.argv[2])
with open("work.sql", "w") as file:
    file.write("create table sale(id integer primary key, shop text, product text, price int, note text);\nbegin;\n")
    for number in range(size):
        note = "n" * draw.randrange(120)
        file.write(
            "insert into sale values(%d,'shop %d','product %d',%d,'%s');\n"
            % (number, draw.randrange(200), draw.randrange(5000), draw.randrange(10000), note)
        )
    file.write('''commit;
create index by_shop on sale(shop, product);
select shop, count(*), sum(price), max(note) from sale group by shop order by 3 desc limit 5;
select product, group_concat(id) from sale group by product order by length(group_concat(id)) desc, product limit 2;
update sale set note = note || product where id % 3 = 0;
delete from sale where id % 2 = 0;
select a.shop, count(*) from sale a join sale b on a.shop = b.shop and a.product = b.product group by a.shop order by 2, 1 limit 5;
select count(*), sum(length(note)) from sale;
''')
