package translate

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var writeGolden = flag.Bool("update", false, "write the golden files")

// The whole of a small shop, with one mistake of each kind. To read what this package does,
// compare testdata/shop.yaml with testdata/shop.golden.yaml.
func TestTheConfigurationOfAWholeSnapshot(t *testing.T) {
	text, err := os.ReadFile("testdata/shop.yaml")
	require.NoError(t, err)
	snap := snapshotOf(t, string(text))
	chain, key := newAuthority(t).issue(t, "shop.example.com")
	cert := secret("shop", chain, key)
	snap.Secrets = append(snap.Secrets, cert)
	d := Translate(snap, Options{Published: []string{"192.0.2.1"}, Now: born.AddDate(0, 1, 0)})

	got := ""
	section := func(title string, v any) {
		plain, err := json.Marshal(v)
		require.NoError(t, err)
		text, err := yaml.JSONToYAML(plain)
		require.NoError(t, err)
		got += fmt.Sprintf("# %s\n%s\n", title, text)
	}
	require.Len(t, d.Config.Certificates, 1)
	section("Settings", d.Config.Settings)
	section("Servers: port, host, match, path: what is done", told(d.Config))
	section("Upstreams", d.Config.Upstreams)
	problems := map[string][]string{}
	for _, r := range d.Reports {
		o := sourceOf(r.Object)
		key := o.Kind + " " + o.Namespace + "/" + o.Name
		problems[key] = append([]string{}, problemsOf(d, o.Kind, name(r.Object).String())...)
	}
	section("Problems", problems)
	got = strings.TrimSpace(got) + "\n"

	const golden = "testdata/shop.golden.yaml"
	if *writeGolden {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test ./translate -update writes it")
}
