module github.com/unthrottle/unthrottle/libs/go

go 1.25.0
