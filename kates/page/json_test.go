package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/test/golden"
	"github.com/kates-go/kates/kates"
)

func TestTheJSONOfEachPageHasTheFieldsThatProgramsKnow(t *testing.T) {
	p, base := serve(t, client("one", withConfigMap()), graphs(t))
	p.Close() // no sample but these
	p.history.series = nil
	p.requests.add(requestKind{"one", "patch", "apps", "v1", "deployments", ""}, time.Now(), kates.RequestResult{Code: 409})
	p.recent.add("one", time.Now(), &kates.UpdateInfo{
		Watch: "w", ID: 2, Key: "k", First: true, Opened: time.Second, Duration: time.Second, Changes: 1,
		Each: func(yield func(q, ns, n string, t kates.DeltaType) bool) {
			yield("Services", "prod", "a", kates.ObjectAdd)
		},
	})
	now := time.Now()
	for i := range 3 {
		values := map[string]float64{}
		sampleOf("one", p.members()[0].report(), now, values)
		p.history.add(now.Add(time.Duration(i-3)*time.Second), values)
	}
	var all strings.Builder
	for _, address := range []string{
		"", "queries", "snapshots", "objects?query=Services&watch=2", "objects?query=Services&watch=2&invalid=1&limit=1",
		"streams", "journal", "partitions", "loops", "derived?graph=graph&node=rows&key=prod/a", "leaders", "requests", "object?query=Services&watch=2&namespace=prod&name=a",
	} {
		var body any
		require.NoError(t, json.Unmarshal([]byte(ok(t, base+address, "Accept", "application/json")), &body))
		fields := map[string]bool{}
		fieldsIn("", body, fields)
		fmt.Fprintf(&all, "%s\n", strings.ReplaceAll("/"+address, "&", " "))
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&all, "  %s\n", name)
		}
	}
	wrote, err := golden.Check("testdata/fields.txt", all.String())
	require.NoError(t, err)
	require.False(t, wrote, "the golden file was written")
}

// fieldsIn collects the names of fields, with their types. Maps by code or reason count as values.
func fieldsIn(at string, v any, to map[string]bool) {
	switch t := v.(type) {
	case map[string]any:
		for name, value := range t {
			if base := at[strings.LastIndexByte(at, '.')+1:]; base == "lists" || base == "watches" || base == "calls" || base == "codes" {
				name = "*"
			}
			fieldsIn(at+"."+name, value, to)
		}
	case []any:
		if len(t) == 0 {
			to[at+"[]"] = true
		}
		for _, value := range t {
			fieldsIn(at+"[]", value, to)
		}
	default:
		to[fmt.Sprintf("%s %T", at, v)] = true
	}
}
