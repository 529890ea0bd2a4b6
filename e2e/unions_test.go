package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// crowd is a group of writers that work until they are told to stop. They finish the writes that
// they have begun: the server would finish them anyway, only later.
type crowd struct {
	stop func()
	wg   sync.WaitGroup
}

func newCrowd(t *testing.T, writers int, work func(ctx context.Context, r *rand.Rand)) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{stop: cancel}
	t.Cleanup(c.end)
	for i := range writers {
		c.wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for ctx.Err() == nil {
				work(context.Background(), r)
				pause(ctx, time.Duration(r.IntN(10))*time.Millisecond)
			}
		})
	}
	return c
}

func (c *crowd) end() {
	c.stop()
	c.wg.Wait()
}

// during reads snapshots after each signal, for a while.
func (f *follower) during(d time.Duration) {
	f.t.Helper()
	for end := time.After(d); ; {
		f.update()
		select {
		case <-f.acc.Changed():
		case <-end:
			return
		}
	}
}

// delayed delays the watches of a resource whose request contains the text, open ones too.
func (f *follower) delayed(resource, in string, d time.Duration) {
	f.faults.On(katestest.Match{Resource: resource, Verb: "watch", Where: func(r katestest.Request) bool {
		return strings.Contains(r.Query.Get("labelSelector")+" "+r.Namespace, in)
	}}).Delay(d)
}

// move returns a patch of the labels that the union selects by.
func move(where int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"labels":{"a":"%d","b":"%d"}}}`, where&1, where>>1&1)
}

func TestG5G7AUnionFollowsWhatMovesBetweenItsSelectorsThoughOneWatchIsLate(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(f *follower){
		"all in time":               func(*follower) {},
		"the first is late":         func(f *follower) { f.delayed("configmaps", "a=1", 300*time.Millisecond) },
		"the second is late":        func(f *follower) { f.delayed("configmaps", "b=1", 300*time.Millisecond) },
		"the first is late and cut": func(f *follower) { f.delayed("configmaps", "a=1", 300*time.Millisecond); go f.cuts("a=1") },
	} {
		for form, metadata := range map[string]bool{"whole": false, "metadata": true} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				f := newFollower(t, nil)
				in := foreign(t).Resource(configMaps).Namespace(f.ns)
				for i := range 6 { // these are always in one selector or in both
					_, err := in.Create(t.Context(), object(configMaps, f.ns, fmt.Sprint("pillar-", i), map[string]string{"a": "1"}), metav1.CreateOptions{})
					require.NoError(t, err)
				}
				f.list = func() []kates.Unstructured {
					return append(f.listed(configMaps, f.ns, "a=1"), f.listed(configMaps, f.ns, "b=1,a!=1")...)
				}
				trouble(f)
				f.watch(kates.Query{Kind: "cm", Namespace: f.ns, MetadataOnly: metadata, AnyOf: []kates.Selection{{LabelSelector: "a=1"}, {LabelSelector: "b=1"}}})
				f.arrive()
				f.always = func() {
					for i := range 6 {
						require.Contains(t, f.shown, fmt.Sprint(f.ns, "/pillar-", i), "G8: a gap")
					}
				}
				moving := newCrowd(t, 3, func(ctx context.Context, r *rand.Rand) { f.wander(ctx, in, r) })
				for begun := time.Now(); f.updates <= 20 && time.Since(begun) < patience; {
					f.during(3 * time.Second)
				}
				moving.end()
				f.arrive()
				f.faults.Heal()
				// What came and went unread may be shown for a moment (the watches are late).
				require.NoError(t, f.client.Sync(t.Context()))
				f.arrive()
				f.quiet()
				assert.Greater(t, f.updates, 20)
			})
		}
	}
}

// cuts cuts watches now and then, until the test ends.
func (f *follower) cuts(selector string) {
	for f.t.Context().Err() == nil {
		pause(f.t.Context(), 400*time.Millisecond)
		f.faults.Now(katestest.Match{Resource: "configmaps", Where: func(r katestest.Request) bool { return r.Query.Get("labelSelector") == selector }}).Cut(0)
	}
}

// wander creates and deletes an object and moves it between the selectors and out of both. Now
// and then it writes as the client itself.
func (f *follower) wander(ctx context.Context, in dynamic.ResourceInterface, r *rand.Rand) {
	name := fmt.Sprint("o-", r.IntN(8))
	switch r.IntN(7) {
	case 0, 1:
		_, _ = in.Patch(ctx, fmt.Sprint("pillar-", r.IntN(6)), types.MergePatchType, move(1+r.IntN(3)), metav1.PatchOptions{})
	case 2:
		_ = in.Delete(ctx, name, metav1.DeleteOptions{})
	case 3:
		_, _ = in.Create(ctx, object(configMaps, f.ns, name, map[string]string{"a": fmt.Sprint(r.IntN(2)), "b": fmt.Sprint(r.IntN(2))}), metav1.CreateOptions{})
	case 4:
		_ = f.client.Patch(ctx, object(configMaps, f.ns, name, nil), kates.MergePatchType, move(r.IntN(4)), nil)
	default:
		_, _ = in.Patch(ctx, name, types.MergePatchType, move(r.IntN(4)), metav1.PatchOptions{})
	}
}

// towns returns namespaces with three objects each. All are shown, or none.
func towns(t *testing.T, f *follower, n int) (all []string) {
	t.Helper()
	for range n {
		ns := namespace(t)
		fill(t, ns, 3, configMaps)
		all = append(all, ns)
	}
	f.always = func() {
		counts := map[string]int{}
		for key := range f.shown {
			counts[strings.Split(key, "/")[0]]++
		}
		for ns, count := range counts {
			require.Equal(t, 3, count, "a namespace comes and goes as one: %s", ns)
		}
		require.Equal(t, 3, counts[all[0]], "G8: a gap")
	}
	return all
}

// busy changes the objects of namespaces; it creates and deletes none.
func busy(ctx context.Context, in dynamic.NamespaceableResourceInterface, namespaces []string, r *rand.Rand) {
	ns, name := namespaces[r.IntN(len(namespaces))], fmt.Sprintf("o-%04d", r.IntN(3))
	_, _ = in.Namespace(ns).Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, r.IntN(1000)), metav1.PatchOptions{})
}

func TestG4G7NamespacesAreRelabelledByEverybodyWhileTheirWatchIsLate(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(f *follower){
		"in time":             func(*follower) {},
		"namespaces are late": func(f *follower) { f.delayed("namespaces", "", 300*time.Millisecond) },
		"objects are late":    func(f *follower) { f.delayed("configmaps", "", 300*time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil)
			f.returns = true
			all := towns(t, f, 5)
			s := newSubject(t, "")
			team := func(ns string, in bool) *kates.Unstructured {
				u := kates.NewUnstructured("Namespace", "v1")
				u.SetName(ns)
				u.SetLabels(map[string]string{"team-" + f.ns: fmt.Sprint(in)})
				return u
			}
			for _, ns := range all[:3] {
				s.label(ns, "team-"+f.ns, "true")
			}
			f.list = func() (found []kates.Unstructured) {
				list, err := s.admin.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "team-" + f.ns + "=true"})
				require.NoError(t, err)
				for _, ns := range list.Items {
					found = append(found, f.listed(configMaps, ns.Name, "")...)
				}
				return found
			}
			trouble(f)
			f.watch(kates.Query{Kind: "cm", NamespaceSelector: "team-" + f.ns + "=true"})
			f.arrive()
			in := foreign(t).Resource(configMaps)
			writing := newCrowd(t, 2, func(ctx context.Context, r *rand.Rand) { busy(ctx, in, all, r) })
			relabelling := newCrowd(t, 1, func(ctx context.Context, r *rand.Rand) {
				_, _ = s.admin.CoreV1().Namespaces().Patch(ctx, all[1+r.IntN(2)], types.MergePatchType,
					fmt.Appendf(nil, `{"metadata":{"labels":{"team-%s":"%t"}}}`, f.ns, r.IntN(2) == 0), metav1.PatchOptions{})
			})
			for i := range 20 { // the client itself relabels two of them
				ns, in := all[3+i%2], i%4 < 2
				require.NoError(t, f.client.Apply(t.Context(), team(ns, in), nil, kates.ForceOwnership()))
				f.update()
				_, shown := f.shown[ns+"/o-0000"]
				require.Equal(t, in, shown, "G4: %s", ns)
				f.during(50 * time.Millisecond)
			}
			relabelling.end()
			writing.end()
			f.arrive()
			f.faults.Heal()
			f.quiet()
		})
	}
}

func TestG7TheNamespacesOfAQueryChangeUnderForeignWritersWithOneWatchLate(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	f.returns = true
	all := towns(t, f, 4)
	now := all[:2]
	f.list = func() (found []kates.Unstructured) {
		for _, ns := range now {
			found = append(found, f.listed(configMaps, ns, "")...)
		}
		return found
	}
	f.delayed("configmaps", all[2], 300*time.Millisecond)
	f.watch(kates.Query{Kind: "cm", Namespaces: now})
	f.arrive()
	in := foreign(t).Resource(configMaps)
	writing := newCrowd(t, 3, func(ctx context.Context, r *rand.Rand) { busy(ctx, in, all, r) })
	r := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		now = all[:1:1]
		for _, ns := range all[1:] {
			if r.IntN(2) == 0 {
				now = append(now, ns)
			}
		}
		require.NoError(t, f.acc.Replace(t.Context(), kates.Query{Name: "Objects", Kind: "cm", Namespaces: now}))
		f.update()
		if f.acc.Status().Queries[0].Changing {
			f.during(time.Duration(r.IntN(150)) * time.Millisecond)
			continue // all of the old ones are shown until all of the new ones can be
		}
		for key := range f.shown {
			require.Contains(t, now, strings.Split(key, "/")[0], "what is no longer wanted has left")
		}
		f.during(time.Duration(r.IntN(150)) * time.Millisecond)
	}
	writing.end()
	f.arrive()
	f.faults.Heal()
	f.quiet()
	assert.Len(t, f.faults.Open(reads), len(now), "G11: no watch is left")
}

func TestG7TheSelectorsOfAQueryAreReplacedWithoutAGapThoughTheNewOneIsLate(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	f.returns = true
	in := foreign(t).Resource(configMaps).Namespace(f.ns)
	for i := range 9 { // three of these are in both
		labels := map[string]string{"a": fmt.Sprint(min(i/3, 1)), "b": fmt.Sprint(min((8-i)/3, 1))}
		_, err := in.Create(t.Context(), object(configMaps, f.ns, fmt.Sprint("o-", i), labels), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	f.delayed("configmaps", "b=1", 400*time.Millisecond)
	selector := "a=1"
	f.list = func() []kates.Unstructured { return f.listed(configMaps, f.ns, selector) }
	f.watch(kates.Query{Kind: "cm", Namespace: f.ns, LabelSelector: selector})
	f.arrive()
	f.always = func() { require.GreaterOrEqual(t, len(f.shown), 6, "G8: a gap") }
	writing := newCrowd(t, 2, func(ctx context.Context, r *rand.Rand) {
		_, _ = in.Patch(ctx, fmt.Sprint("o-", r.IntN(9)), types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, r.IntN(1000)), metav1.PatchOptions{})
	})
	for i := range 6 {
		selector = []string{"b=1", "a=1"}[i%2]
		require.NoError(t, f.acc.Replace(t.Context(), kates.Query{Name: "Objects", Kind: "cm", Namespace: f.ns, LabelSelector: selector}))
		f.during(time.Duration(100+200*(i%3)) * time.Millisecond)
	}
	writing.end()
	f.arrive()
	f.faults.Heal()
	f.quiet()
	assert.Len(t, f.faults.Open(reads), 1, "G11: no watch is left")
}

func TestG1G7AQueryThatIsAddedIsShownWholeAndOneThatIsRemovedLeavesWhole(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	fill(t, f.ns, 5, configMaps)
	fill(t, f.ns, 40, secrets)
	var snap struct {
		Objects []*kates.Unstructured
		More    map[string]*corev1.Secret
	}
	f.delayed("secrets", "", 300*time.Millisecond)
	f.watch(kates.Query{Kind: "cm", Namespace: f.ns})
	in := foreign(t).Resource(secrets).Namespace(f.ns)
	writing := newCrowd(t, 2, func(ctx context.Context, r *rand.Rand) {
		_, _ = in.Patch(ctx, fmt.Sprintf("o-%04d", r.IntN(40)), types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"n":%q}}`, secrecy.Mark(fmt.Sprint(r.IntN(1000)))), metav1.PatchOptions{})
	})
	shown := map[string]string{} // versions, according to the deltas
	read := func() {
		t.Helper()
		var deltas []*kates.Delta
		changed, err := f.acc.UpdateWithDeltas(t.Context(), &snap, &deltas)
		require.NoError(t, err)
		if !changed {
			return
		}
		require.Len(t, snap.Objects, 5, "G8: a gap")
		for _, d := range deltas {
			_, had := shown[d.Name]
			switch {
			case d.Query == "Objects":
				continue
			case d.DeltaType == kates.ObjectDelete:
				delete(shown, d.Name)
			default:
				shown[d.Name] = d.ResourceVersion
			}
			require.Equal(t, d.DeltaType != kates.ObjectAdd, had, "G7: %s %s", d.DeltaType, d.Name)
		}
		require.Len(t, snap.More, len(shown), "G7")
		for _, o := range snap.More {
			require.Equal(t, o.ResourceVersion, shown[o.Name], "G7")
		}
		require.Contains(t, []int{0, 40}, len(snap.More), "G1: none of it or all")
	}
	until := func(cond func() bool) {
		t.Helper()
		for deadline := time.After(patience); !cond(); read() {
			select {
			case <-f.acc.Changed():
			case <-deadline:
				require.Fail(t, "no such snapshot", "%s", f.acc.Status())
			}
		}
	}
	until(func() bool { return len(snap.Objects) == 5 })
	for range 4 {
		require.NoError(t, f.acc.Add(t.Context(), kates.Query{Name: "More", Kind: "secrets", Namespace: f.ns}))
		require.ErrorContains(t, f.acc.Add(t.Context(), kates.Query{Name: "More", Kind: "cm"}), "already")
		until(func() bool { return len(snap.More) == 40 })
		require.NoError(t, f.acc.Remove(t.Context(), "More"))
		until(func() bool { return snap.More == nil })
		require.ErrorContains(t, f.acc.Remove(t.Context(), "More"), "no query")
	}
	writing.end()
	require.Eventually(t, func() bool { return len(f.faults.Open(katestest.Match{Resource: "secrets"})) == 0 }, patience, 10*time.Millisecond, "G11: no watch is left")
}
