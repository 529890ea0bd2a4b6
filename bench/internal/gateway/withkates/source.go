package withkates

import (
	_ "embed"
	"os"
	"path/filepath"
	"reflect"
	"runtime"

	"github.com/kates-go/kates/examples/gateway/report"
)

//go:embed gateway.go
var source string

// Sources are the Go files that read from the API and write to it: that of this package, and of
// examples/gateway the queries, the loops, and the writer of reports. There are none if that module
// is not where it was at the build.
func Sources() []string {
	all := []string{source}
	file, _ := runtime.FuncForPC(reflect.ValueOf(report.NewWriter).Pointer()).FileLine(0)
	root := filepath.Dir(filepath.Dir(file))
	for _, path := range []string{
		"translate/queries.go", "loops/gateway.go", "loops/endpoints.go", "loops/refusals.go", "report/report.go",
	} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil
		}
		all = append(all, string(text))
	}
	return all
}
