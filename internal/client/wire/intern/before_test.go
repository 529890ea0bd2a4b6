//go:build !kates_safe

package intern

import (
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// next interns an object after its version before.
func (t *Table) next(o, before any, share bool) {
	t.Object(o, before, share)
}

// isEmpty reports whether nothing was looked up.
func (t *Table) isEmpty() bool {
	var zero Table
	zero.object(&struct{ S string }{}, true)
	return reflect.DeepEqual(t.slots, zero.slots) && reflect.DeepEqual(t.maps, zero.maps) && reflect.DeepEqual(t.lists, zero.lists)
}

// keys are the strings that are a map's keys, by what they say.
func keys(m map[string]string) map[string]string {
	all := map[string]string{}
	for k := range m {
		all[k] = k
	}
	return all
}

func TestWhatIsEqualIsThatOfTheVersionBeforeWithoutTheTable(t *testing.T) {
	for _, share := range []bool{false, true} {
		before, o := pod(1), pod(1)
		long := strings.Repeat("l", longest+1)
		before.Spec.NodeName, o.Spec.NodeName = fresh(long), fresh(long)
		o.ResourceVersion, o.Spec.Priority, o.Status.ObservedGeneration = "2", new(int32), 7
		want, old := o.DeepCopy(), before.DeepCopy()
		var table Table
		table.next(o, before, share)
		assert.Equal(t, want, o)
		assert.Equal(t, old, before)
		assert.True(t, table.isEmpty())
		co, cb := o.Spec.Containers[0], before.Spec.Containers[0]
		for _, pair := range [][2]string{
			{o.Namespace, before.Namespace}, {o.GenerateName, before.GenerateName}, {o.Spec.NodeName, before.Spec.NodeName}, {co.Image, cb.Image},
			{co.Command[1], cb.Command[1]}, {co.SecurityContext.SELinuxOptions.User, cb.SecurityContext.SELinuxOptions.User},
			{o.Labels["a"], before.Labels["a"]}, {keys(o.Labels)["c"], keys(before.Labels)["c"]},
		} {
			assert.True(t, same(pair[0], pair[1]), "%q", pair)
		}
		assert.Equal(t, share, mapOf(o.Labels) == mapOf(before.Labels))
		assert.Equal(t, share, mapOf(o.Annotations) == mapOf(before.Annotations))
		assert.Equal(t, share, mapOf(co.Resources.Limits) == mapOf(cb.Resources.Limits))
	}
}

func TestWhatTheVersionBeforeHasNotIsLookedUp(t *testing.T) {
	other := pod(1) // which others have made known
	other.Labels["new"], other.Spec.Containers[0].Image = "label", fresh("new image")
	other.Spec.Containers[0].Command = []string{fresh("run"), fresh("me"), fresh("faster")}
	other.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("2Gi")
	other.Spec.Hostname = fresh("only now")
	other.Spec.Containers[0].SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{GMSACredentialSpec: new("spec")}
	o := other.DeepCopy()
	for _, s := range []*string{&o.Spec.Hostname, &o.Spec.Containers[0].Image, &o.Spec.Containers[0].Command[2], o.Spec.Containers[0].SecurityContext.WindowsOptions.GMSACredentialSpec} {
		*s = fresh(*s)
	}
	table := spacious(append([]string{"new image", "faster", "only now", "spec"}, podTexts...),
		pod(1).Labels, pod(1).Annotations, other.DeepCopy().Labels)
	table.object(other, true)
	before := pod(1)
	want, old := o.DeepCopy(), before.DeepCopy()
	table.next(o, before, true)
	assert.Equal(t, want, o)
	assert.Equal(t, old, before)
	co, cn := o.Spec.Containers[0], other.Spec.Containers[0]
	for _, pair := range [][2]string{
		{o.Spec.Hostname, other.Spec.Hostname}, {co.Image, cn.Image}, {co.Command[2], cn.Command[2]},
		{*co.SecurityContext.WindowsOptions.GMSACredentialSpec, *cn.SecurityContext.WindowsOptions.GMSACredentialSpec},
	} {
		assert.True(t, same(pair[0], pair[1]), "%q", pair)
	}
	assert.Equal(t, mapOf(other.Labels), mapOf(o.Labels))
	assert.Equal(t, mapOf(cn.Resources.Limits), mapOf(co.Resources.Limits))
	assert.True(t, same(before.Namespace, o.Namespace))
	assert.True(t, same(before.Spec.Containers[0].Command[1], co.Command[1]))
}

// versions are a few that may follow each other, of which each has less or more than others.
func versions() map[string]func() *corev1.Pod {
	return map[string]func() *corev1.Pod{
		"whole":     func() *corev1.Pod { return realistic.Pod(1) },
		"restarted": func() *corev1.Pod { return realistic.Restarted(realistic.Pod(1), 5) },
		"another":   func() *corev1.Pod { return realistic.Pod(2) },
		"nothing":   func() *corev1.Pod { return &corev1.Pod{} },
		"shorter": func() *corev1.Pod {
			p := realistic.Pod(1)
			p.Spec.Containers, p.Spec.Tolerations, p.Status.Conditions = p.Spec.Containers[:1], p.Spec.Tolerations[:0], nil
			p.Labels, p.Spec.Containers[0].LivenessProbe, p.Spec.Containers[0].Env[2].ValueFrom.FieldRef = nil, nil, nil
			return p
		},
		"longer": func() *corev1.Pod {
			p := realistic.Pod(1)
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers...)
			p.Spec.Containers[0].StartupProbe = p.Spec.Containers[0].LivenessProbe.DeepCopy()
			p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
			p.Labels["more"] = "yes"
			return p.DeepCopy()
		},
	}
}

func TestAnObjectStaysWhatItIsWhateverWasBeforeAndThatIsNotWrittenTo(t *testing.T) {
	for was, first := range versions() {
		for is, second := range versions() {
			for _, share := range []bool{false, true} {
				var table Table
				before, o := first(), second()
				table.object(before, share)
				table.object(second(), share) // others share it already
				var reading sync.WaitGroup
				reading.Go(func() { // as users do, meanwhile
					assert.Equal(t, first(), before)
					for _, c := range before.Spec.Containers {
						assert.Equal(t, "256Mi", c.Resources.Limits.Memory().String(), "which it remembers, in a copy")
					}
				})
				table.next(o, before, share)
				reading.Wait()
				assert.Equal(t, second(), o, "%s after %s", is, was)
				assert.Equal(t, first(), before, "%s before %s", was, is)
			}
		}
	}
}

func TestTypesThatHaveThemselvesInThemAreFollowedAsFarAsBothGo(t *testing.T) {
	deep := func(n int) *odd {
		var o *odd
		for range n {
			o = &odd{Self: o, Long: fresh("at every depth"), All: []odd{{Long: fresh("one")}, {All: []odd{{Long: fresh("two")}}}}}
		}
		return o
	}
	for _, depths := range [][2]int{{3, 3}, {3, 1}, {1, 3}} {
		var table Table
		before, o := deep(depths[0]), deep(depths[1])
		table.next(o, before, true)
		assert.Equal(t, deep(depths[1]), o)
		assert.Equal(t, deep(depths[0]), before)
		for a, b := o, before; a != nil && b != nil; a, b = a.Self, b.Self {
			assert.True(t, same(a.Long, b.Long))
			assert.True(t, same(a.All[0].Long, b.All[0].Long))
			assert.True(t, same(a.All[1].All[0].Long, b.All[1].All[0].Long))
		}
		assert.Equal(t, depths[1] <= depths[0], table.isEmpty())
	}
}
