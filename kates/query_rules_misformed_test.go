package kates_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// watching returns the error of a watch of S. Its first field is the one in question.
func watching[S any](t *testing.T, queries ...kates.Query) error {
	t.Helper()
	s, err := kates.Watch[S](t.Context(), katestest.NewClient(t), queries...)
	if err == nil {
		s.Close()
	}
	return err
}

// TestAFieldOfAWrongFormIsAnErrorThatSaysTheRightOne: a tag would not help.
func TestAFieldOfAWrongFormIsAnErrorThatSaysTheRightOne(t *testing.T) {
	const (
		form   = ": a query fills a slice, a map, a list or a Lookup; want "
		maps   = "[]*v1.ConfigMap"
		deltas = "want []*kates.Delta"
		faults = "want []kates.Invalid"
	)
	named, kind := kates.Query{Name: "X"}, kates.Query{Name: "X", Kind: "configmaps"}
	for _, of := range []struct {
		want string
		err  error
	}{
		{"*v1.ConfigMap" + form + maps, watching[struct{ X *kates.ConfigMap }](t)},
		{"v1.ConfigMap" + form + maps, watching[struct{ X kates.ConfigMap }](t)},
		{"[3]*v1.ConfigMap" + form + maps, watching[struct{ X [3]*kates.ConfigMap }](t)},
		{"*[]*v1.ConfigMap" + form + maps, watching[struct{ X *[]*kates.ConfigMap }](t)},
		{"chan *v1.ConfigMap" + form + maps, watching[struct{ X chan *kates.ConfigMap }](t)},
		{"[]**v1.ConfigMap: a pointer to a pointer cannot hold an object; want " + maps, watching[struct{ X []**kates.ConfigMap }](t)},
		{"[][]*v1.ConfigMap: []*v1.ConfigMap cannot hold an object; want " + maps, watching[struct{ X [][]*kates.ConfigMap }](t)},
		{"map[int]*v1.ConfigMap: its keys are int; want map[types.NamespacedName]*v1.ConfigMap", watching[struct{ X map[int]*kates.ConfigMap }](t)},
		{"map[string][]*v1.ConfigMap: []*v1.ConfigMap cannot hold an object; want map[string]*v1.ConfigMap", watching[struct{ X map[string][]*kates.ConfigMap }](t)},
		{"[]v1.ConfigMapList: v1.ConfigMapList is a list, not an object; want v1.ConfigMapList", watching[struct{ X []corev1.ConfigMapList }](t)},
		{"*kates.Lookup[*k8s.io/api/core/v1.Secret]" + form + "kates.Lookup[*k8s.io/api/core/v1.Secret]", watching[struct {
			X *kates.Lookup[*kates.Secret]
		}](t)},
		{"[]kates.Lookup[*k8s.io/api/core/v1.Secret]: a Lookup is not an object; want kates.Lookup", watching[struct {
			X []kates.Lookup[*kates.Secret]
		}](t)},
		{"[]kates.Object: kates.Object is an interface, which does not say what an object becomes; want []*unstructured.Unstructured or []any", watching[struct{ X []kates.Object }](t)},
		{"*v1.ConfigMap" + form + maps, watching[struct {
			X *kates.ConfigMap `kates:",optional"`
		}](t)},
		{"*v1.ConfigMap" + form + maps, watching[struct {
			X *kates.ConfigMap `kates:"configmaps"`
		}](t)},
		{"[3]*v1.ConfigMap" + form + maps, watching[struct{ X [3]*kates.ConfigMap }](t, named)},
		{"[]kates.Object: kates.Object is an interface", watching[struct{ X []kates.Object }](t, kind)},

		{"[]kates.Delta: " + deltas, watching[struct{ X []kates.Delta }](t)},
		{"*[]*kates.Delta: " + deltas, watching[struct{ X *[]*kates.Delta }](t)},
		{"kates.Delta: " + deltas, watching[struct{ X kates.Delta }](t, named)},
		{"[]kates.Delta: " + deltas, watching[struct {
			X []kates.Delta `kates:",optional"`
		}](t)},
		{"[]*kates.Invalid: " + faults, watching[struct{ X []*kates.Invalid }](t)},
		{"map[string]kates.Invalid: " + faults, watching[struct{ X map[string]kates.Invalid }](t, kind)},
		{"[]*kates.Invalid: " + faults, watching[struct {
			X []*kates.Invalid `kates:"configmaps"`
		}](t)},
	} {
		assert.ErrorContains(t, of.err, of.want)
		assert.ErrorContains(t, of.err, "field X")
		assert.NotContains(t, of.err.Error(), "KIND", "%s: another tag would not help", of.want)
		assert.NotContains(t, of.err.Error(), "internal/", "%s", of.want)
		assert.NotContains(t, of.err.Error(), " object.Object", "%s: kates.Object is its name", of.want)
	}
	assert.ErrorContains(t, watching[struct{ X *kates.ConfigMap }](t), "if it is no query, the tag `kates:\"-\"`")
	_, err := kates.NewLister[map[string]any](t.Context(), katestest.NewClient(t), kates.Query{})
	assert.ErrorContains(t, err, "or its query a Kind", "a lister has no tag")
	_, err = kates.NewLister[kates.Object](t.Context(), katestest.NewClient(t), kind)
	assert.ErrorContains(t, err, "make a lister of kates.Object: ")
}

func TestATargetOfUpdateThatIsNilIsAnErrorThatSaysSo(t *testing.T) {
	type snapshot struct{ ConfigMaps []*kates.ConfigMap }
	a, err := katestest.NewClient(t).Watch(t.Context(), kates.Query{Name: "ConfigMaps", Kind: "configmaps"})
	require.NoError(t, err)
	var none *snapshot
	for want, target := range map[string]any{
		"the target of an update is nil: want a pointer to a struct":                                nil,
		"the target of an update is a nil *kates_test.snapshot: want a pointer to a struct":         none,
		"the target of an update is a pointer to a struct, not **kates_test.snapshot":               &none,
		"the target of an update is a pointer to a struct, not kates_test.snapshot":                 snapshot{},
		"the target of an update is a pointer to a struct, not *[]kates.Object":                     &[]kates.Object{},
		"the target of an update is a pointer to a struct, not map[string]kates.Object":             map[string]kates.Object{},
		"field ConfigMaps of struct { ConfigMaps []kates.Object } has type []kates.Object: kates.O": &struct{ ConfigMaps []kates.Object }{},
	} {
		_, err := a.Update(t.Context(), target)
		assert.ErrorContains(t, err, want)
	}
	s, err := kates.Watch[snapshot](t.Context(), katestest.NewClient(t))
	require.NoError(t, err)
	_, err = s.Update(t.Context(), nil)
	assert.ErrorContains(t, err, "is a nil *kates_test.snapshot")
}

// TestAFieldThatIsNotExportedIsLoggedIfItLooksLikeAQuery: encoding/json leaves such a field alone,
// too, but here a program waits for its objects.
func TestAFieldThatIsNotExportedIsLoggedIfItLooksLikeAQuery(t *testing.T) {
	out := &logged{}
	client := katestest.New(t, katestest.WithClientOptions(kates.WithLogger(slog.New(slog.NewTextHandler(out, nil))))).Client
	type embedded struct{ pods map[string]*kates.Pod }
	type snapshot struct {
		embedded
		ConfigMaps []*kates.ConfigMap
		services   []*kates.Service
		deltas     []*kates.Delta
		invalid    []*kates.Invalid
		secrets    kates.Lookup[*kates.Secret]

		// These say that nothing is to fill them, or could be of anything.
		nodes  []*kates.Node `kates:"-"`
		one    *kates.ConfigMap
		cache  map[string]any
		buffer bytes.Buffer
	}
	_ = []any{snapshot{}.pods, snapshot{}.services, snapshot{}.deltas, snapshot{}.invalid, snapshot{}.secrets, snapshot{}.nodes, snapshot{}.one, snapshot{}.cache, snapshot{}.buffer}
	for range 2 {
		s, err := kates.Watch[snapshot](t.Context(), client)
		require.NoError(t, err)
		s.Close()
	}
	const line = `msg="fields are not filled, because they are not exported" type=kates_test.snapshot fields="[pods services deltas invalid secrets]"`
	assert.Equal(t, 1, out.count(line), out.text.String())
	assert.Equal(t, 1, out.count("not exported"), "once")

	type silent struct {
		ConfigMaps []*kates.ConfigMap
		cache      map[string]string
	}
	_ = silent{}.cache
	s, err := kates.Watch[silent](t.Context(), client)
	require.NoError(t, err)
	s.Close()
	assert.Equal(t, 1, out.count("not exported"))

	assert.ErrorContains(t, watching[struct{ services []*kates.Service }](t), "no field says what to watch: not exported are services")
	assert.ErrorContains(t, watching[struct {
		ConfigMaps []*kates.ConfigMap
		services   []*kates.Service `kates:"services"`
	}](t), "field services has a kates tag but is not exported")
}
