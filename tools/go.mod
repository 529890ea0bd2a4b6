// What checks this repository but is no part of it: linters, pinned here, and
// the programs that `make test` runs.
module github.com/kates-go/kates/tools

go 1.26.0

tool honnef.co/go/tools/cmd/staticcheck

require (
	github.com/google/licensecheck v0.3.1
	golang.org/x/exp v0.0.0-20261014143641-f0251eb4aa3e
	golang.org/x/mod v0.43.0
	golang.org/x/tools v0.52.0
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/sync v0.25.0 // indirect
	honnef.co/go/tools v0.8.2 // indirect
)
