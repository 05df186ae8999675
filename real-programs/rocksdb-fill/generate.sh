# db_bench generates its keys and values itself, from a seed: this writes its flags.
cat > flags.txt <<END
--seed=$1
--num=$2
--benchmarks=fillrandom,readrandom,overwrite
--threads=2
--db=data
--disable_wal=true
--write_buffer_size=4194304
--value_size=100
--compression_type=none
END
