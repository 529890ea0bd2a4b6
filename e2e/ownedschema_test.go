package e2e

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// schemed is a custom kind whose schema a test changes.
type schemed struct {
	*ownedTest
	g *gadget
}

const fieldsOfSpec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"

func newSchemed(t *testing.T) *schemed {
	o := newOwnedTest(t)
	s := &schemed{o, newGadget(t, o.ns)}
	s.g.installWith(`{"type": "object", "properties": {
		"spec": {"type": "object", "properties": {"color": {"type": "string"}}},
		"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}}`)
	s.spy = newSpy(s.w, "gadgets")
	s.others = foreign(t).Resource(s.g.resource("v1")).Namespace(o.ns)
	require.NoError(t, o.client.WaitFor(t.Context(), s.g.kind))
	return s
}

func (s *schemed) thing(name string, spec map[string]any) *kates.Unstructured {
	u := s.g.object("v1", s.ns, name, "red")
	u.SetLabels(nil)
	for field, value := range spec {
		u.Object["spec"].(map[string]any)[field] = value
	}
	return u
}

// schema gives a field of the spec a schema, or removes it. It waits until the server accepts or
// refuses a value of the field.
func (s *schemed) schema(field string, schema map[string]any, goes func(error) bool, value any) {
	s.Helper()
	if schema == nil {
		_, err := foreign(s).Resource(definitions).Patch(s.Context(), s.g.kind, types.JSONPatchType, fmt.Appendf(nil, `[{"op":"remove","path":%q}]`, fieldsOfSpec+field), metav1.PatchOptions{})
		require.NoError(s, err)
	} else {
		s.g.edit(fieldsOfSpec+field, schema)
	}
	force := true
	require.Eventually(s, func() bool {
		tried := s.thing("tried", map[string]any{field: value})
		data, err := tried.MarshalJSON()
		require.NoError(s, err)
		_, err = s.others.Patch(s.Context(), "tried", kates.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "tries", Force: &force, DryRun: []string{metav1.DryRunAll}})
		return goes(err)
	}, patience, 50*time.Millisecond)
}

func takes(err error) bool   { return err == nil }
func refuses(err error) bool { return err != nil }

// report writes the status as another program.
func (s *schemed) report(name string, n int) {
	s.Helper()
	require.Eventually(s, func() bool {
		_, err := s.others.Patch(s.Context(), name, kates.MergePatchType, fmt.Appendf(nil, `{"status":{"n":%d}}`, n), metav1.PatchOptions{FieldManager: "others"}, "status")
		return err == nil
	}, patience, 50*time.Millisecond)
}

var text = map[string]any{"type": "string"}

func TestApplyOwnedOfAFieldThatTheSchemaDoesNotHaveIsAnErrorUntilItDoes(t *testing.T) {
	s := newSchemed(t)
	set := s.set(s.thing("a", map[string]any{"size": "big"}), s.thing("b", nil))
	set.Kinds = nil
	for range 2 {
		result, err := s.client.ApplyOwned(t.Context(), set)
		assert.ErrorContains(t, err, s.ns+"/a")
		assert.ErrorContains(t, err, ".spec.size")
		assert.Equal(t, []string{"b"}, append(referred(result.Applied), referred(result.Unchanged)...))
	}
	s.schema("size", text, takes, "big")
	result := s.apply(set)
	assert.Equal(t, []string{"a"}, referred(result.Applied))
	assert.Equal(t, "big", s.stored("a").Object["spec"].(map[string]any)["size"])
}

// A write to an object drops a field that the schema lacks. The record of its owner stays.
func TestApplyOwnedPutsBackWhatWasLostWhileTheSchemaDidNotHaveIt(t *testing.T) {
	for _, how := range []string{"not watched", "watched", "watched by a new one", "given a default"} {
		t.Run(how, func(t *testing.T) {
			s := newSchemed(t)
			if how == "watched" {
				s.watch(kates.Query{Kind: s.g.kind, Namespace: s.ns})
			}
			s.schema("size", text, takes, "big")
			set := s.set(s.thing("a", map[string]any{"size": "big"}))
			set.Kinds = nil
			s.apply(set)
			s.schema("size", nil, refuses, "big")
			s.report("a", 1)
			require.NotContains(t, s.stored("a").Object["spec"], "size")
			back := maps.Clone(text)
			if how == "given a default" {
				back["default"] = "small"
			}
			s.schema("size", back, takes, "big")
			require.NotEqual(t, "big", s.stored("a").Object["spec"].(map[string]any)["size"])
			if how == "watched by a new one" {
				s.client = newWire(t).client(t, kates.WithNamespace(s.ns))
				s.watch(kates.Query{Kind: s.g.kind, Namespace: s.ns})
			}
			require.NoError(t, s.client.Sync(t.Context()))
			assert.Len(t, s.apply(set).Applied, 1)
			assert.Equal(t, "big", s.stored("a").Object["spec"].(map[string]any)["size"])
			n := 1
			// a watch that uses the former schema shows such objects until it ends
			assert.Eventually(t, func() bool {
				n++
				s.report("a", n)
				require.NoError(t, s.client.Sync(t.Context()))
				s.spy.seen()
				assert.Len(t, s.apply(set).Unchanged, 1)
				return s.spy.seen()["PATCH"] == 0
			}, patience, 50*time.Millisecond)
		})
	}
}

// A list that was owned as a whole is now owned by its items, or the other way round.
func TestApplyOwnedGoesOnWhenTheSchemaMakesAnotherKindOfListOfOne(t *testing.T) {
	items := func(keys ...any) map[string]any {
		list := map[string]any{"type": "array", "items": map[string]any{
			"type": "object", "required": []any{"name"}, "properties": map[string]any{"name": text, "value": text},
		}}
		if len(keys) > 0 {
			list["x-kubernetes-list-type"], list["x-kubernetes-list-map-keys"] = "map", keys
		}
		return list
	}
	item := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	twice := []any{item("x", ""), item("x", "")} // this distinguishes the two kinds of list
	for how, watched := range map[string]bool{"not watched": false, "watched": true} {
		t.Run(how, func(t *testing.T) {
			s := newSchemed(t)
			if watched {
				s.watch(kates.Query{Kind: s.g.kind, Namespace: s.ns})
			}
			s.schema("items", items(), takes, twice)
			set := s.set(s.thing("a", map[string]any{"items": []any{item("x", "1"), item("y", "2")}}))
			set.Kinds = nil
			is := func(want ...any) {
				t.Helper()
				assert.Equal(t, want, s.stored("a").Object["spec"].(map[string]any)["items"])
			}
			settled := func() {
				t.Helper()
				require.NoError(t, s.client.Sync(t.Context()))
				assert.Len(t, s.apply(set, kates.ForceOwnership()).Unchanged, 1)
			}
			s.apply(set)
			settled()

			s.schema("items", items("name"), refuses, twice)
			s.patch("a", `{"spec":{"items":[{"name":"x","value":"1"},{"name":"y","value":"drifted"},{"name":"z","value":"3"}]}}`)
			require.NoError(t, s.client.Sync(t.Context()))
			assert.Len(t, s.apply(set, kates.ForceOwnership()).Applied, 1)
			is(item("x", "1"), item("y", "2"), item("z", "3"))
			settled()
			s.report("a", 1)
			settled()

			s.schema("items", items(), takes, twice)
			require.NoError(t, s.client.Sync(t.Context()))
			settled()
			s.patch("a", `{"spec":{"items":[{"name":"x","value":"1"},{"name":"y","value":"2"}]}}`)
			require.NoError(t, s.client.Sync(t.Context()))
			assert.Len(t, s.apply(set, kates.ForceOwnership()).Applied, 1, "the list is the others'")
			is(item("x", "1"), item("y", "2"))
			settled()
		})
	}
}
