//go:build !kates_safe

package intern

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func fresh(s string) string { return strings.Clone(s) }

func pod(i int) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Namespace, p.GenerateName = fmt.Sprint("p", i), fresh("ns"), fresh("p-")
	p.Labels = map[string]string{fresh("a"): fresh("b"), fresh("c"): fresh("d")}
	p.Annotations = map[string]string{fresh("a"): fmt.Sprint(i)}
	p.Spec.Containers = []corev1.Container{{
		Image: fresh("image"), Command: []string{fresh("run"), fresh("me")},
		SecurityContext: &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: fresh("user")}},
		Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}},
	}}
	return p
}

func (t *Table) object(o any, share bool) { t.Object(o, nil, share) }

// spacious returns an empty table in which each of these texts and maps has a place of its own,
// so that none of them displaces another. The seed decides the places, and differs in each run.
func spacious(texts []string, all ...map[string]string) *Table {
	for _, m := range all {
		for key, value := range m {
			texts = append(texts, key, value)
		}
	}
	for {
		var table Table
		table.object(&struct {
			Texts []string
			Maps  []map[string]string
		}{slices.Clone(texts), all}, true)
		displaced := slices.ContainsFunc(texts, func(s string) bool {
			return !slices.Contains(table.slots, s)
		}) || slices.ContainsFunc(all, func(m map[string]string) bool {
			return !slices.ContainsFunc(table.maps, func(in map[string]string) bool { return maps.Equal(m, in) })
		})
		clear(table.slots)
		clear(table.maps)
		if !displaced {
			return &table
		}
	}
}

// podTexts are the strings of a pod that may be in a table, besides those of its maps.
var podTexts = []string{"ns", "p-", "image", "run", "me", "user"}

func same(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

func mapOf(m any) unsafe.Pointer { return reflect.ValueOf(m).UnsafePointer() }

func TestObjectsShareWhatTheyHaveInCommonAndStayWhatTheyAre(t *testing.T) {
	for _, share := range []bool{false, true} {
		a, b := pod(1), pod(2)
		table := spacious(podTexts, pod(1).Labels, pod(1).Annotations, pod(2).Annotations)
		table.object(a, share)
		table.object(b, share)
		assert.Equal(t, pod(1), a)
		assert.Equal(t, pod(2), b)
		ca, cb := a.Spec.Containers[0], b.Spec.Containers[0]
		for _, pair := range [][2]string{
			{a.Namespace, b.Namespace}, {a.GenerateName, b.GenerateName}, {a.Labels["a"], b.Labels["a"]}, {ca.Image, cb.Image},
			{ca.Command[1], cb.Command[1]}, {ca.SecurityContext.SELinuxOptions.User, cb.SecurityContext.SELinuxOptions.User},
		} {
			assert.True(t, same(pair[0], pair[1]), "%q", pair)
		}
		assert.Equal(t, share, mapOf(a.Labels) == mapOf(b.Labels))
		assert.Equal(t, share, mapOf(ca.Resources.Limits) == mapOf(cb.Resources.Limits))
		assert.NotEqual(t, mapOf(a.Annotations), mapOf(b.Annotations))
		for ka := range a.Annotations {
			for kb := range b.Annotations {
				assert.True(t, same(ka, kb), "keys too")
			}
		}
	}
}

func TestMapsThatDifferAreNotShared(t *testing.T) {
	var table Table
	for i := range 5000 {
		p := pod(i)
		p.Labels["i"] = fmt.Sprint(i % 3000)
		p.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse(fmt.Sprint(i%1500, "Mi"))
		want := p.DeepCopy()
		table.object(p, true)
		if !assert.Equal(t, want, p) {
			return
		}
	}
	assert.Len(t, table.slots, slots, "it does not grow")
}

// shared is a type that decodes itself, into memory that is not its own.
type shared struct{ To *string }

func (*shared) UnmarshalJSON([]byte) error { return nil }

type odd struct {
	Self   *odd
	All    []odd
	Shared shared
	Map    map[string]int
	Any    any
	hidden string
	Raw    json.RawMessage
	Long   string
}

func TestWhatMayBelongToOthersIsLeftAlone(t *testing.T) {
	var table Table
	common, long := fresh("x"), strings.Repeat("l", longest+1)
	table.object(&odd{Long: fresh("x")}, true)
	before := common
	o := &odd{Self: &odd{Long: fresh("x")}, Shared: shared{&common}, Any: "x", hidden: fresh("x"), Long: long}
	table.object(o, true)
	assert.True(t, same(before, *o.Shared.To))
	assert.True(t, same(long, o.Long))
	other := &odd{Long: fresh("x")}
	table.object(other, true)
	assert.True(t, same(other.Long, o.Self.Long), "a type within itself")
	table.object(&struct{ N int }{}, true)
	table.object(&appsv1.Deployment{}, true)
}

func TestATableMayBeUsedByManyAtOnce(t *testing.T) {
	var table Table
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 100 {
				p := pod(i)
				table.object(p, true)
				assert.Equal(t, pod(i), p)
			}
		})
	}
	all.Wait()
}
