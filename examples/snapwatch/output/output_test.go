package output_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/examples/snapwatch/output"
	"github.com/kates-go/kates/kates"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func object(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for k, v := range more {
		u.Object[k] = v
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	u.SetNamespace("prod")
	u.SetResourceVersion("7")
	u.SetCreationTimestamp(metav1.NewTime(now.Add(-3 * time.Minute)))
	return u
}

const hidden = "aHVudGVyMg=="

func snapshot() output.Snapshot {
	return output.Snapshot{
		Number: 2, At: now,
		Kinds: []output.Kind{
			{Query: "Deployments", Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Objects: []*unstructured.Unstructured{
				object("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{"replicas": int64(2)}}),
			}},
			{Query: "Pods", Kind: schema.GroupKind{Kind: "Pod"}},
			{Query: "Secrets", Kind: schema.GroupKind{Kind: "Secret"}, Objects: []*unstructured.Unstructured{
				object("v1", "Secret", "key", map[string]any{"data": map[string]any{"password": hidden}}),
			}},
		},
		Deltas: []*kates.Delta{
			kates.NewDelta(kates.ObjectUpdate, object("apps/v1", "Deployment", "web", nil)),
			kates.NewDelta(kates.ObjectDelete, object("v1", "Pod", "web-1", nil)),
		},
	}
}

// printed returns what is printed of n snapshots.
func printed(t *testing.T, n int, args ...string) string {
	t.Helper()
	flags := output.NewFlags()
	flags.Once = n == 1
	cmd := &cobra.Command{}
	flags.AddFlags(cmd)
	require.NoError(t, cmd.ParseFlags(args))
	p, err := flags.Printer()
	require.NoError(t, err)
	var b strings.Builder
	for range n {
		require.NoError(t, p.Print(&b, snapshot()))
	}
	return b.String()
}

func TestASnapshotIsOneListAsOfKubectlGet(t *testing.T) {
	got := printed(t, 2, "-o", "json")
	assert.Equal(t, 2, strings.Count(got, `"kind": "List"`))
	assert.Contains(t, got, `"replicas": 2`)
	assert.Contains(t, got, hidden, "JSON is whole, as kubectl's")
	assert.Contains(t, printed(t, 2, "-o", "yaml"), "\n---\napiVersion: v1\nitems:\n")
}

func TestTemplatesAndNamesAreKubectls(t *testing.T) {
	assert.Equal(t, "deployment.apps/web\nsecret/key\n\ndeployment.apps/web\nsecret/key\n", printed(t, 2, "-o", "name"))
	assert.Equal(t, "web key", printed(t, 1, "-o", "jsonpath={.items[*].metadata.name}"))
	assert.Equal(t, "web key\nweb key\n", printed(t, 2, "-o", "jsonpath={.items[*].metadata.name}"))
	assert.Equal(t, "web,key,", printed(t, 1, "-o", "go-template={{range .items}}{{.metadata.name}},{{end}}"))
	assert.Equal(t, "web,key,", printed(t, 1, "--template", "{{range .items}}{{.metadata.name}},{{end}}"))
}

func TestATableHasNamesStatesAndAges(t *testing.T) {
	assert.Equal(t, "NAMESPACE   NAME                  STATUS       AGE\n"+
		"prod        deployment.apps/web   InProgress   3m\n"+
		"\n"+
		"NAMESPACE   NAME         STATUS    AGE\n"+
		"prod        secret/key   Current   3m\n", printed(t, 1, "-o", "table"))
	assert.Contains(t, printed(t, 2, "-o", "wide"), "Snapshot 2, 12:00:00\nNAMESPACE ")
}

func TestDeltasAreLines(t *testing.T) {
	lines := strings.Split(printed(t, 1, "-o", "deltas"), "\n")
	assert.Equal(t, "SNAPSHOT CHANGE NAMESPACE NAME VERSION", strings.Join(strings.Fields(lines[0]), " "))
	assert.Equal(t, "2 update prod deployment.apps/web 7", strings.Join(strings.Fields(lines[1]), " "))
	assert.Equal(t, "2 delete prod pod/web-1 7", strings.Join(strings.Fields(lines[2]), " "))
}

func TestCustomColumnsArePaths(t *testing.T) {
	assert.Equal(t, "NAME   REPLICAS\nweb    2\nkey    <none>\n",
		printed(t, 1, "-o", "custom-columns=NAME:.metadata.name,REPLICAS:{.spec.replicas}"))
}

func TestNoSecretDataIsInTablesNamesOrDeltas(t *testing.T) {
	for _, format := range []string{"table", "wide", "deltas", "name"} {
		assert.NotContains(t, printed(t, 2, "-o", format), hidden, format)
	}
}

func TestPrintersDoNotWriteToObjects(t *testing.T) {
	for _, format := range []string{"json", "yaml", "kyaml", "name", "table", "jsonpath={.items}"} {
		s := snapshot()
		managed := []any{map[string]any{"manager": "x"}}
		s.Kinds[0].Objects[0].Object["metadata"].(map[string]any)["managedFields"] = managed
		before := s.Kinds[0].Objects[0].DeepCopy()
		flags := output.NewFlags()
		cmd := &cobra.Command{}
		flags.AddFlags(cmd)
		require.NoError(t, cmd.ParseFlags([]string{"-o", format}))
		p, err := flags.Printer()
		require.NoError(t, err)
		require.NoError(t, p.Print(&strings.Builder{}, s))
		assert.Equal(t, before, s.Kinds[0].Objects[0], format)
	}
}

func TestAFormatThatIsNoneNamesAllFormats(t *testing.T) {
	for _, format := range []string{"xml", "custom-columns", "custom-columns=A", "custom-columns=A:.b[", "jsonpath={.a["} {
		flags := output.NewFlags()
		cmd := &cobra.Command{}
		flags.AddFlags(cmd)
		require.NoError(t, cmd.ParseFlags([]string{"-o", format}))
		_, err := flags.Printer()
		assert.Error(t, err, format)
	}
	flags := output.NewFlags()
	cmd := &cobra.Command{}
	flags.AddFlags(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"-o", "xml"}))
	_, err := flags.Printer()
	assert.ErrorContains(t, err, "deltas")
}
