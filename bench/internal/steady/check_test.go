package steady

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/bench/internal/replay"
	"github.com/kates-go/kates/kates"
)

var plan = replay.Schedule{Objects: 4, Rate: 100, Lasts: time.Second}

// after returns a correct snapshot: each kind after a number of events, of all kinds, with the
// deltas since another snapshot. That is nil for the first one.
func after(before *shown, events ...int) *shown {
	sources := plan.Sources()
	for at, objects := range sources {
		for j, o := range objects {
			if i := plan.Last(at, j, events[at]); i >= 0 {
				replay.Mend(o, i)
			}
		}
	}
	s := new(shown)
	for j := range plan.Objects {
		s.Pods = append(s.Pods, sources[0][j].(*kates.Pod))
		s.Services = append(s.Services, sources[1][j].(*kates.Service))
		s.ConfigMaps = append(s.ConfigMaps, sources[2][j].(*kates.ConfigMap))
	}
	for at, objects := range s.kinds() {
		for j, o := range objects {
			d := &kates.Delta{DeltaType: kates.ObjectUpdate, Query: queries[at], ObjectMeta: metav1.ObjectMeta{
				Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion(),
			}}
			if before == nil {
				d.DeltaType = kates.ObjectAdd
			}
			if before == nil || before.kinds()[at][j].GetResourceVersion() != o.GetResourceVersion() {
				s.Deltas = append(s.Deltas, d)
			}
		}
	}
	return s
}

func TestSnapshotsOfTheServersStatesAreRight(t *testing.T) {
	c := newChecker(plan)
	var before *shown
	for _, events := range [][]int{{0, 0, 0}, {1, 0, 0}, {4, 5, 0}, {4, 5, 3}, {31, 29, 30}, {31, 29, 30}, {100, 98, 99}} {
		s := after(before, events...)
		require.NoError(t, c.snapshot(s, before == nil || len(s.Deltas) > 0), events)
		require.NoError(t, c.held(s))
		before = s
		first := slices.Min([]int{(events[0] + 2) / 3 * 3, (events[1]+1)/3*3 + 1, events[2]/3*3 + 2})
		assert.Equal(t, first, c.missing(), events)
		assert.Equal(t, first == 100, c.done())
	}
}

func TestASnapshotThatIsWrongIsNoticed(t *testing.T) {
	for name, spoil := range map[string]func(*shown){
		"an object is missing":              func(s *shown) { s.Pods = s.Pods[1:] },
		"an object is shown twice":          func(s *shown) { s.Services[1] = s.Services[0] },
		"an object is not of the server":    func(s *shown) { s.ConfigMaps[3].Name = "other" },
		"an event is missing in the middle": func(s *shown) { s.Pods[2] = after(nil, 12, 0, 0).Pods[2] },
		"the first event has no effect":     func(s *shown) { s.Pods[2] = after(nil, 0, 0, 0).Pods[2] },
		"a kind goes back":                  func(s *shown) { s.Services = after(nil, 0, 12, 0).Services },
		"an object has another's content":   func(s *shown) { s.Pods[1].Spec = s.Pods[0].Spec },
		"an object has another's event":     func(s *shown) { replay.Mend(s.Pods[1], 18) },
		"a version is not the event's":      func(s *shown) { s.Pods[1].ResourceVersion += "0" },
		"a mark is no number":               func(s *shown) { s.Pods[1].Annotations["bench.kates.io/mark"] = "x" },
		"an object has lost an annotation":  func(s *shown) { delete(s.Pods[1].Annotations, "checksum/config") },
		"a delta is missing":                func(s *shown) { s.Deltas = s.Deltas[1:] },
		"a delta comes twice":               func(s *shown) { s.Deltas = append(s.Deltas, s.Deltas[0]) },
		"a delta is of what is as it was": func(s *shown) {
			d := *s.Deltas[0]
			d.Query, d.Namespace, d.Name = "ConfigMaps", s.ConfigMaps[3].Namespace, s.ConfigMaps[3].Name
			s.Deltas = append(s.Deltas, &d)
		},
		"a delta is of another query":   func(s *shown) { s.Deltas[0].Query = "Services" },
		"a delta is of another type":    func(s *shown) { s.Deltas[0].DeltaType = kates.ObjectAdd },
		"a delta is of another version": func(s *shown) { s.Deltas[0].ResourceVersion = "1" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newChecker(plan)
			first := after(nil, 16, 17, 6)
			require.NoError(t, c.snapshot(first, true))
			second := after(first, 22, 20, 6)
			spoil(second)
			require.Error(t, c.snapshot(second, true))
		})
	}
}

func TestWhatUpdateReturnsIsChecked(t *testing.T) {
	c, s := newChecker(plan), after(nil, 0, 0, 0)
	require.Error(t, c.snapshot(s, false), "the first one")
	c = newChecker(plan)
	require.NoError(t, c.snapshot(s, true))
	require.Error(t, c.snapshot(after(s, 0, 0, 0), true), "nothing has changed")
	require.Error(t, c.snapshot(after(s, 1, 0, 0), false), "a pod has changed")
}

func TestASnapshotThatChangesDuringTheReconcileIsNoticed(t *testing.T) {
	c, s := newChecker(plan), after(nil, 16, 17, 6)
	require.NoError(t, c.snapshot(s, true))
	require.NoError(t, c.held(s))
	s.Pods[1].Labels["app"] = "other"
	require.Error(t, c.held(s))
	s.Pods = s.Pods[1:]
	require.Error(t, c.held(s))
}
