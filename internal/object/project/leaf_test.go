//go:build !kates_safe

package project

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestWhatJSONOmitsIsNotInALeafOfAnyType: a zero value is on the wire, and not in JSON.
func TestWhatJSONOmitsIsNotInALeafOfAnyType(t *testing.T) {
	type leaves struct {
		Metadata struct {
			Created json.RawMessage `json:"creationTimestamp"`
			Name    any             `json:"generateName"`
		} `json:"metadata"`
		Status struct {
			Ready     any             `json:"readyReplicas"`
			Available json.Number     `json:"availableReplicas"`
			Updated   json.RawMessage `json:"updatedReplicas"`
			Replicas  *any            `json:"replicas"`
			Observed  *json.Number    `json:"observedGeneration"`
		} `json:"status"`
	}
	plan, err := Compile(reflect.TypeFor[leaves](), reflect.TypeFor[appsv1.Deployment]())
	require.NoError(t, err)
	require.True(t, plan.Direct())
	raw, err := (&appsv1.Deployment{}).Marshal()
	require.NoError(t, err)
	var got leaves
	require.NoError(t, plan.Protobuf(raw, &got))
	assert.Equal(t, leaves{}, got)

	full := &appsv1.Deployment{}
	full.Status.ReadyReplicas, full.Status.AvailableReplicas, full.Status.UpdatedReplicas = 1, 2, 3
	raw, err = full.Marshal()
	require.NoError(t, err)
	require.NoError(t, plan.Protobuf(raw, &got))
	assert.Equal(t, "1 2 3", fmt.Sprint(got.Status.Ready, " ", got.Status.Available, " ", string(got.Status.Updated)))
}

// TestAnEmptyValueOfAMapIsThereInEachType: it need not be on the wire, and is in JSON.
func TestAnEmptyValueOfAMapIsThereInEachType(t *testing.T) {
	secret, again := &corev1.Secret{Data: map[string][]byte{"a": {}, "b": nil}}, &corev1.Secret{}
	raw, err := secret.Marshal()
	require.NoError(t, err)
	require.NoError(t, again.Unmarshal(raw))
	for _, target := range []any{
		struct {
			Data map[string]any `json:"data"`
		}{},
		struct {
			Data map[string]json.RawMessage `json:"data"`
		}{},
		struct {
			Data map[string]*string `json:"data"`
		}{},
		struct {
			Data map[string][]byte `json:"data"`
		}{},
	} {
		plan, err := Compile(reflect.TypeOf(target), reflect.TypeFor[corev1.Secret]())
		require.NoError(t, err)
		got, want := reflect.New(plan.target).Interface(), reflect.New(plan.target).Interface()
		require.NoError(t, plan.Protobuf(raw, got))
		require.NoError(t, throughJSON(again, want))
		assert.Equal(t, want, got)
	}
}

// structs makes struct types at random, for parts of a kind.
type structs struct{ *rand.Rand }

func (r structs) of(source reflect.Type, depth int) reflect.Type {
	var fields []reflect.StructField
	for i, f := range flat(source, 0) {
		ofObject := depth == 0 && (f.name == "kind" || f.name == "apiVersion")
		if ofObject || f.number == 0 || r.IntN(3) > 0 {
			continue
		}
		tag := reflect.StructTag(fmt.Sprintf("json:%q", f.name))
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: r.leaf(f.typ, depth+1), Tag: tag})
	}
	return reflect.StructOf(fields)
}

// leaf is a type that can hold what a field has in JSON.
func (r structs) leaf(source reflect.Type, depth int) reflect.Type {
	typ, hasParts := bare(source), false
	switch {
	case speaks(typ):
	case typ.Kind() == reflect.Slice && !isBytes(typ):
		if r.IntN(20) > 0 { // else JSON has to be asked for
			return reflect.SliceOf(r.leaf(typ.Elem(), depth))
		}
	case typ.Kind() == reflect.Map:
		if r.IntN(20) > 0 {
			return reflect.MapOf(reflect.TypeFor[string](), r.leaf(typ.Elem(), depth))
		}
	case typ.Kind() == reflect.Struct:
		hasParts = depth < 6
	}
	some := []reflect.Type{
		reflect.TypeFor[any](), reflect.TypeFor[*any](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[*json.RawMessage](),
		source, typ, reflect.PointerTo(typ),
	}
	switch {
	case speaks(typ):
	case hasParts && r.IntN(3) > 0:
		if typ = r.of(typ, depth); r.IntN(2) == 0 {
			return typ
		}
		return reflect.PointerTo(typ)
	case typ.Kind() == reflect.Struct:
		some = append(some, reflect.TypeFor[map[string]any](), reflect.TypeFor[map[string]json.RawMessage]())
	case isInteger(typ):
		some = append(some, reflect.TypeFor[json.Number](), reflect.TypeFor[*json.Number](), reflect.TypeFor[int64](),
			reflect.TypeFor[float64](), reflect.TypeFor[*float64]())
	case isBytes(typ):
		some = append(some, reflect.TypeFor[string](), reflect.TypeFor[*string]())
	}
	return some[r.IntN(len(some))]
}

// kindsInProtobuf are the Go types of all kinds of client-go's scheme that come in protobuf.
func kindsInProtobuf() (all []reflect.Type) {
	known := scheme.Scheme.AllKnownTypes()
	byName := func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }
	for _, kind := range slices.SortedFunc(maps.Keys(known), byName) {
		o := reflect.New(known[kind]).Interface()
		_, isObject := o.(metav1.Object)
		_, decodes := o.(protobuf)
		if isObject && decodes && !slices.Contains(all, known[kind]) {
			all = append(all, known[kind])
		}
	}
	return all
}

// TestAStructIsWhatJSONMakesOfTheObjectForEachKind: structs and objects are drawn at random, the
// same in each run.
func TestAStructIsWhatJSONMakesOfTheObjectForEachKind(t *testing.T) {
	direct, kinds := 0, kindsInProtobuf()
	require.Greater(t, len(kinds), 60)
	for i, source := range kinds {
		for seed := range uint64(6) {
			target := structs{rand.New(rand.NewPCG(seed, uint64(i)))}.of(source, 0)
			plan, err := Compile(target, source)
			require.NoError(t, err, "%s into %s", source, target)
			if plan.Direct() {
				direct++
			}
			for object := range uint64(4) {
				from, again := reflect.New(source).Interface(), reflect.New(source).Interface()
				filler(object + 10*seed).Fill(from)
				raw, err := from.(interface{ Marshal() ([]byte, error) }).Marshal()
				require.NoError(t, err)
				require.NoError(t, again.(protobuf).Unmarshal(raw)) // what the wire brings
				got, want := reflect.New(target).Interface(), reflect.New(target).Interface()
				require.NoError(t, plan.Protobuf(raw, got), "%s into %s", source, target)
				require.NoError(t, throughJSON(again, want))
				require.Equal(t, want, got, "%s into %s, seed %d, object %d", source, target, seed, object)
			}
		}
	}
	assert.Greater(t, direct, 2*len(kinds), "plans that skip what is not wanted")
}

func TestAPlanIsDirectUnlessOnlyJSONCanFillAField(t *testing.T) {
	for _, pair := range pairs {
		plan, err := Compile(reflect.TypeOf(pair.target), reflect.TypeOf(pair.source))
		require.NoError(t, err)
		assert.Equal(t, pair.direct, plan.Direct(), "%T", pair.target)
	}
}

func TestANumberThatDoesNotFitIsAnError(t *testing.T) {
	plan, err := Compile(reflect.TypeFor[struct {
		Spec struct {
			Replicas int8 `json:"replicas"`
		} `json:"spec"`
	}](), reflect.TypeFor[appsv1.Deployment]())
	require.NoError(t, err)
	d := &appsv1.Deployment{}
	n := int32(300)
	d.Spec.Replicas = &n
	raw, err := d.Marshal()
	require.NoError(t, err)
	into := reflect.New(plan.target).Interface()
	assert.ErrorContains(t, plan.Protobuf(raw, into), "spec: replicas: 300 is no int8")
}
