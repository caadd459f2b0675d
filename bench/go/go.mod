module holdfast.bench/go

go 1.19
