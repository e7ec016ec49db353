module orders

go 1.25
