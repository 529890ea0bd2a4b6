package apiserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// written returns the path of a new file.
func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestAPathWithoutDefinitionsIsAnErrorBeforeAnythingStarts(t *testing.T) {
	t.Setenv("KATES_CACHE", written(t, "file", "it would be an error, too"))
	for name, c := range map[string]struct{ path, want string }{
		"no such path": {"no/such/folder", "no such file or directory"},
		"empty folder": {t.TempDir(), "has no CustomResourceDefinition"},
		"other kinds":  {written(t, "a.yaml", "kind: ConfigMap\n---\n# nothing\n---\n"), "has no CustomResourceDefinition"},
		"no YAML":      {written(t, "b.yaml", "{kind"), "b.yaml: "},
		"old version": {
			written(t, "c.json", `{"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.b"}}`),
			`c.json: as.b has apiVersion "apiextensions.k8s.io/v1beta1": the server takes apiextensions.k8s.io/v1 only`,
		},
	} {
		_, err := Start(t.Context(), WithCRDs(crds, c.path))
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, "start a test cluster: ", name)
	}
}

func TestADefinitionThatTheServerRefusesIsAnErrorThatNamesIt(t *testing.T) {
	path := written(t, "wrong.yaml", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wrongs.example.com}
spec: {group: other.example.com, scope: Namespaced, names: {kind: Wrong, plural: wrongs}, versions: []}
`)
	err := shared.Cluster(t).InstallCRDs(t.Context(), crds, path)
	require.ErrorContains(t, err, "install custom resources: wrongs.example.com: ")
}

func TestAFolderGivesAllItsFilesAndNoOthers(t *testing.T) {
	found, err := readDefinitions([]string{crds})
	require.NoError(t, err)
	var names []string
	for _, crd := range found {
		names = append(names, crd.GetName())
	}
	require.Equal(t, []string{"hosts.getambassador.io", "tenants.example.kates.io"}, names)

	one, err := readDefinitions([]string{filepath.Join(crds, "tenants.yaml")})
	require.NoError(t, err)
	require.Equal(t, found[1:], one)
}
