package katestest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// itemsAtTheTop are objects that have a field items, as a list has.
var itemsAtTheTop = map[string]string{
	"texts":   `["a"]`,
	"objects": `[{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"inner"}}]`,
	"none":    `[]`,
	"a map":   `{"a":"b"}`,
}

// basket is an object of the kind AllowList, whose name is as that of a list.
func basket(t *testing.T, items string) *kates.Unstructured {
	t.Helper()
	u := &kates.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(`{"apiVersion":"top.test/v1","kind":"AllowList","metadata":{"name":"one","namespace":"default"},"items":`+items+`}`), &u.Object))
	return u
}

// forms hold the baskets in each form.
type forms struct {
	Raw   []*kates.Unstructured          `kates:"allowlists.top.test"`
	Meta  []*kates.PartialObjectMetadata `kates:"allowlists.top.test"`
	Maps  []map[string]any               `kates:"allowlists.top.test"`
	Typed []*struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Items    any               `json:"items"`
	} `kates:"allowlists.top.test"`
}

// shownInAllForms checks what a client shows of the one basket.
func shownInAllForms(t *testing.T, c *kates.Client, want *kates.Unstructured) {
	t.Helper()
	got := katestest.Snapshot[forms](t, c)
	require.Len(t, got.Raw, 1)
	require.Len(t, got.Meta, 1)
	require.Len(t, got.Maps, 1)
	require.Len(t, got.Typed, 1)
	assert.Equal(t, want.Object["items"], got.Raw[0].Object["items"])
	assert.Equal(t, want.Object["items"], got.Maps[0]["items"])
	assert.Equal(t, want.Object["items"], got.Typed[0].Items)
	assert.Equal(t, "one", got.Meta[0].Name)
	assert.Equal(t, "one", got.Typed[0].Metadata.Name)
}

func TestAnObjectWithItemsIsNoList(t *testing.T) {
	for name, items := range itemsAtTheTop {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := katestest.NewServer(t, katestest.WithManifests(definition("AllowList", "allowlists", "{}")))
				c, one := s.Client(t), basket(t, items)
				require.NoError(t, c.Create(t.Context(), one, nil))
				shownInAllForms(t, c, one)

				var got *kates.Unstructured
				require.NoError(t, c.Get(t.Context(), one, &got))
				assert.Equal(t, one.Object["items"], got.Object["items"])
				got.SetLabels(map[string]string{"a": "b"})
				require.NoError(t, c.Update(t.Context(), got, &got))
				require.NoError(t, c.Patch(t.Context(), got, kates.MergePatchType, []byte(`{"metadata":{"labels":{"c":"d"}}}`), &got))
				require.NoError(t, c.Apply(t.Context(), one, &got, kates.ForceOwnership()))
				assert.Equal(t, map[string]string{"a": "b", "c": "d"}, got.GetLabels())
				assert.Equal(t, one.Object["items"], got.Object["items"])
				var all []*kates.Unstructured
				require.NoError(t, c.List(t.Context(), kates.Query{Kind: "allowlists.top.test"}, &all))
				require.Len(t, all, 1)

				d, err := dynamic.NewForConfig(s.Config)
				require.NoError(t, err)
				theirs, err := d.Resource(schema.GroupVersionResource{Group: "top.test", Version: "v1", Resource: "allowlists"}).
					Namespace("default").Get(t.Context(), "one", metav1.GetOptions{})
				require.NoError(t, err)
				assert.Equal(t, one.Object["items"], theirs.Object["items"])
				for _, path := range []string{"", "/one"} {
					assert.Equal(t, 1, rowsOf(t, s, "/apis/top.test/v1/namespaces/default/allowlists"+path))
				}
				assert.NoError(t, c.Delete(t.Context(), got, nil))
			})
		})
	}
}

// rowsOf asks for a table, and returns the number of its rows.
func rowsOf(t *testing.T, s *katestest.Server, path string) int {
	t.Helper()
	hc, err := rest.HTTPClientFor(s.Config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Config.Host+path, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := hc.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var table metav1.Table
	require.NoError(t, json.NewDecoder(response.Body).Decode(&table))
	return len(table.Rows)
}

func TestAManifestOfAnObjectWithItemsIsNoList(t *testing.T) {
	for name, items := range itemsAtTheTop {
		t.Run(name, func(t *testing.T) {
			want := basket(t, items)
			text, err := json.Marshal(want)
			require.NoError(t, err)
			for _, manifest := range []string{string(text), `{"apiVersion":"v1","kind":"List","items":[` + string(text) + `]}`} {
				objects, err := kates.ParseManifests(manifest)
				require.NoError(t, err)
				require.Len(t, objects, 1)
				assert.Equal(t, want, objects[0])
			}
			synctest.Test(t, func(t *testing.T) {
				definitions := katestest.WithManifests(definition("AllowList", "allowlists", "{}"))
				shownInAllForms(t, katestest.NewServer(t, definitions, katestest.WithManifests(string(text))).Client(t), want)
				shownInAllForms(t, katestest.New(t, definitions, katestest.WithManifests(string(text))).Client, want)
			})
		})
	}
}
