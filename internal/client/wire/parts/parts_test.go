//go:build !kates_safe

package parts_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/kates-go/kates/internal/client/wire/parts"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// message has the methods of generated types.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// allKinds are the Go types of the built-in kinds that have a decoder for protobuf.
func allKinds() (all []reflect.Type) {
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		_, ok := reflect.New(typ).Interface().(message)
		_, object := reflect.New(typ).Interface().(metav1.Object)
		if ok && object && gvk.Version != runtime.APIVersionInternal && !slices.Contains(all, typ) {
			all = append(all, typ)
		}
	}
	slices.SortFunc(all, func(a, b reflect.Type) int { return compare(a.String(), b.String()) })
	return all
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// filler fills values at random, as far as protobuf can tell them apart.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(14).Funcs(
		func(q *resource.Quantity, c randfill.Continue) { *q = resource.MustParse(fmt.Sprint(c.Intn(500), "m")) },
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.NewTime(time.Unix(c.Int63n(1e9), 0)) },
		func(t *metav1.MicroTime, c randfill.Continue) { *t = metav1.NewMicroTime(time.Unix(c.Int63n(1e9), 0)) },
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31n(9)) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(fmt.Sprint(c.Intn(9))) },
		func(f *metav1.FieldsV1, c randfill.Continue) {
			*f = *metav1.NewFieldsV1(fmt.Sprint(`{"f:`, c.Intn(9), `":{}}`))
		},
	)
}

// encoded is an object in protobuf.
func encoded(t testing.TB, o message) []byte {
	raw, err := o.Marshal()
	require.NoError(t, err)
	return raw
}

// plainly decodes an object by its own decoder.
func plainly(t testing.TB, typ reflect.Type, raw []byte) any {
	o := reflect.New(typ).Interface()
	require.NoError(t, o.(message).Unmarshal(slices.Clone(raw)))
	return o
}

// decoded decodes an object by a table. The bytes are overwritten then, as those of a watch are.
func decoded(t testing.TB, table *parts.Table, typ reflect.Type, raw []byte) any {
	t.Helper()
	o := reflect.New(typ)
	raw = slices.Clone(raw)
	require.True(t, table.Decode(o.Interface(), raw))
	for i := range raw {
		raw[i] = 0xff
	}
	return o.Interface()
}

func TestObjectsThatSharePartsAreWhatTheirOwnDecoderMakesOfThem(t *testing.T) {
	kinds := allKinds()
	require.Greater(t, len(kinds), 50)
	for _, typ := range kinds {
		if reflect.PointerTo(typ).String() == "*v1.Status" {
			continue
		}
		table := parts.New(typ, false)
		if !table.Shares() {
			t.Log("left to its decoder:", typ)
			continue
		}
		random := rand.New(rand.NewSource(1))
		all, held := [][]byte{}, []any{}
		for i := range 30 {
			o := reflect.New(typ).Interface()
			if i > 0 && random.Intn(2) == 0 { // a version of another object
				o = plainly(t, typ, all[random.Intn(len(all))])
			}
			alter(filler(int64(i)), random, reflect.ValueOf(o).Elem(), i)
			all = append(all, encoded(t, o.(message)))
			for range 3 { // so that parts of it are remembered
				held = append(held, decoded(t, table, typ, all[i]))
			}
		}
		for i, o := range held {
			require.Equal(t, plainly(t, typ, all[i/3]), o, typ.String())
		}
	}
}

// alter fills one of the fields of a struct, or all of them.
func alter(fill *randfill.Filler, random *rand.Rand, to reflect.Value, i int) {
	if i%7 == 0 {
		fill.Fill(to.Addr().Interface())
	}
	f := to.Field(random.Intn(to.NumField()))
	if f.Kind() == reflect.Struct && f.NumField() > 0 && f.Type() != reflect.TypeFor[metav1.TypeMeta]() {
		if inner := f.Field(random.Intn(f.NumField())); inner.CanInterface() && inner.Kind() != reflect.Interface {
			f = inner
		}
	}
	fill.Fill(f.Addr().Interface())
	if m := to.FieldByName("TypeMeta"); m.IsValid() {
		m.SetZero()
	}
}

// sharing decodes objects one after the other, and calls the function with the last two. Which
// parts a table has room for depends on its seed: the function must be true for one of many
// tables.
func sharing(t *testing.T, typ reflect.Type, each [][]byte, share func(a, b any) bool) {
	t.Helper()
	for range 100 {
		table := parts.New(typ, true)
		var last, now any
		for _, raw := range each {
			last, now = now, decoded(t, table, typ, raw)
		}
		if share(last, now) {
			return
		}
	}
	require.Fail(t, "the objects do not share it")
}

func TestPodsOfOneTemplateHaveItOnce(t *testing.T) {
	var pods [][]byte
	for i := range 5 {
		p := realistic.Pod(7)
		p.Name, p.ResourceVersion = fmt.Sprint("p", i), fmt.Sprint(i)
		pods = append(pods, encoded(t, p))
	}
	for what, same := range map[string]func(a, b *corev1.Pod) bool{
		"containers":       func(a, b *corev1.Pod) bool { return &a.Spec.Containers[0] == &b.Spec.Containers[0] },
		"tolerations":      func(a, b *corev1.Pod) bool { return &a.Spec.Tolerations[0] == &b.Spec.Tolerations[0] },
		"security context": func(a, b *corev1.Pod) bool { return a.Spec.SecurityContext == b.Spec.SecurityContext },
		"labels": func(a, b *corev1.Pod) bool {
			return reflect.ValueOf(a.Labels).Pointer() == reflect.ValueOf(b.Labels).Pointer()
		},
	} {
		t.Run(what, func(t *testing.T) {
			sharing(t, reflect.TypeFor[corev1.Pod](), pods, func(a, b any) bool {
				assert.NotSame(t, a, b)
				assert.Empty(t, a.(*corev1.Pod).ManagedFields)
				return same(a.(*corev1.Pod), b.(*corev1.Pod))
			})
		})
	}
}

func TestContainersThatDifferShareWhatTheyHaveInCommon(t *testing.T) {
	var pods [][]byte
	for i := range 5 {
		p := realistic.Pod(7)
		for c := range p.Spec.Containers {
			p.Spec.Containers[c].VolumeMounts[0].Name = fmt.Sprint("kube-api-access-", i)
		}
		pods = append(pods, encoded(t, p))
	}
	sharing(t, reflect.TypeFor[corev1.Pod](), pods, func(a, b any) bool {
		left, right := a.(*corev1.Pod).Spec.Containers[0], b.(*corev1.Pod).Spec.Containers[0]
		require.Equal(t, "kube-api-access-3", left.VolumeMounts[0].Name)
		require.Equal(t, "kube-api-access-4", right.VolumeMounts[0].Name)
		return left.LivenessProbe == right.LivenessProbe && &left.Env[0] == &right.Env[0] &&
			reflect.ValueOf(left.Resources.Requests).Pointer() == reflect.ValueOf(right.Resources.Requests).Pointer()
	})
}
