"""Writes work.R, which merges and groups frames of SIZE rows."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.R", "w") as file:
    file.write("set.seed(%d)\nsize <- %d\n" % (seed, size))
    file.write("""groups <- max(10, size %/% 50)
one <- data.frame(id = seq_len(size), name = paste0("name", sample(groups, size, TRUE)), value = round(runif(size), 6))
other <- data.frame(name = paste0("name", seq_len(groups)), weight = sample(1000, groups, TRUE))
both <- merge(one, other, by = "name")
sums <- aggregate(value ~ name, both, sum)
parts <- split(both, both$weight %% 40)
lines <- unlist(lapply(parts, function(it) sprintf("%s:%d:%.3f", it$name, it$id, it$value * it$weight)))
words <- table(unlist(strsplit(lines, ":", fixed = TRUE)))
cat(nrow(sums), length(words), sum(nchar(sort(lines, method = "radix"))), "\\n")
""")
