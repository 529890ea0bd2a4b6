package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// fleetView is what the tests of fleets watch.
type fleetView struct {
	Maps    map[string][]*kates.ConfigMap
	Secrets []fleet.Object[*kates.Secret]
	Missing []fleet.Missing
	Deltas  []*fleet.Delta
}

// fleetWorld is a fleet of several clusters: API servers with a history and an identity of their
// own, in one etcd. A reader checks every snapshot of all.
type fleetWorld struct {
	t       *testing.T
	c       *cluster.Cluster
	remotes map[string]*remote
	fleet   *fleet.Fleet
	snaps   *fleet.Snapshots[fleetView]
	writers sync.WaitGroup
	stop    context.CancelFunc // of the writers

	mu      sync.Mutex
	own     map[string]map[string]string // by cluster and name, the version that a write returned
	steady  map[string]bool              // clusters whose objects never vanish
	excused map[string]bool              // clusters that may be missing
	mixed   string                       // a cluster whose address has become another one's
	anew    bool                         // the clusters begin a new history
	kept    map[string]*fleet.Cluster    // clusters that no rotation replaces

	// of the reader
	latest   *fleetView
	read     chan struct{}            // closed when there is another one
	shown    map[string]fleetIdentity // by the deltas
	newest   map[string]fleetIdentity // by cluster and UID
	count    int
	problems int
}

type fleetIdentity struct {
	uid      types.UID
	objectRV string
}

var remoteNames = []string{"home", "a", "b", "c"}

func newFleetWorld(t *testing.T) *fleetWorld {
	t.Helper()
	w := startFleetWorld(t, remoteNames...)
	w.join(fleet.Options{Probe: time.Second, Timeout: 5 * time.Second, Interval: 10 * time.Millisecond, Deadline: patience})
	for name, r := range w.remotes {
		require.NoError(t, w.fleet.Add(name, r.faulty()))
	}
	w.watch()
	return w
}

// startFleetWorld starts the servers. The first name is that of the server that has the etcd.
func startFleetWorld(t *testing.T, names ...string) *fleetWorld {
	t.Helper()
	c, err := cluster.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Kill()) })
	w := &fleetWorld{
		t: t, c: c, remotes: make(map[string]*remote), own: make(map[string]map[string]string),
		steady: make(map[string]bool), excused: make(map[string]bool),
		read: make(chan struct{}), shown: make(map[string]fleetIdentity), newest: make(map[string]fleetIdentity),
	}
	for i, name := range names {
		server := c.Server()
		if i > 0 {
			server, err = c.AddServer("etcd-prefix=/" + name)
			require.NoError(t, err)
		}
		w.remotes[name], w.steady[name] = w.newRemote(name, server), true
	}
	return w
}

// join makes the fleet.
func (w *fleetWorld) join(options fleet.Options) {
	w.t.Helper()
	f, err := tappedFleet(fleet.New(options))
	require.NoError(w.t, err)
	w.t.Cleanup(f.Close)
	w.fleet = f
}

// watch starts the reader, and waits until it sees all clusters.
func (w *fleetWorld) watch() {
	w.t.Helper()
	snaps, err := fleet.Watch[fleetView](w.t.Context(), w.fleet)
	require.NoError(w.t, err)
	w.snaps = snaps
	var reading sync.WaitGroup
	reading.Go(w.readAll)
	w.t.Cleanup(reading.Wait)
	w.t.Cleanup(w.snaps.Close)
	w.until("all is shown", func(v *fleetView) bool { return len(v.Missing) == 0 })
}

// newRemote makes the steady objects of a cluster.
func (w *fleetWorld) newRemote(name string, server *cluster.Server) *remote {
	w.t.Helper()
	r := &remote{name: name, server: server, config: at(w.c, server), network: katestest.NewNetwork(w.t), to: server.Address()}
	r.direct = kubernetes.NewForConfigOrDie(r.config)
	require.Eventually(w.t, func() bool {
		_, system := r.direct.CoreV1().Namespaces().Get(w.t.Context(), "kube-system", metav1.GetOptions{})
		_, normal := r.direct.CoreV1().Namespaces().Get(w.t.Context(), "default", metav1.GetOptions{})
		return system == nil && normal == nil
	}, patience, 20*time.Millisecond)
	for i := range 5 {
		r.put(w.t, w.t.Context(), fmt.Sprint("keep-", i))
	}
	return r
}

// write starts the writers. Other programs write to all clusters. The fleet's clients write to
// those that keep their names.
func (w *fleetWorld) write() {
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop = stop
	w.t.Cleanup(func() { stop(); w.writers.Wait() })
	for name, r := range w.remotes {
		w.writers.Go(func() { r.churn(ctx) })
		if name != "b" {
			w.writers.Go(func() { w.writeOwn(ctx, r) })
		}
	}
}

// writeOwn writes through the fleet's client, whatever becomes of it.
func (w *fleetWorld) writeOwn(ctx context.Context, r *remote) {
	for i := 0; ctx.Err() == nil; i++ {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		_ = w.putOwn(try, r, fmt.Sprint("own-", rand.IntN(10)), i)
		cancel()
		r.pauseWriter(ctx)
	}
}

// putOwn writes an object through the fleet's client, and notes the version if that succeeds.
func (w *fleetWorld) putOwn(ctx context.Context, r *remote, name string, round int) error {
	m, _ := r.objects(name)
	m.Data["round"] = fmt.Sprint(round)
	var made kates.ConfigMap
	if err := w.fleet.Cluster(r.name).Client().Upsert(ctx, m, m, &made); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own[r.name] == nil {
		w.own[r.name] = make(map[string]string)
	}
	w.own[r.name][name] = made.ResourceVersion
	return nil
}

// readAll reads and checks every snapshot.
func (w *fleetWorld) readAll() {
	for range w.snaps.Changed() {
		w.mu.Lock()
		own := make(map[string]map[string]string)
		for name, all := range w.own {
			own[name] = maps.Clone(all)
		}
		w.mu.Unlock()
		v := new(fleetView)
		changed, err := w.snaps.Update(context.Background(), v)
		if err != nil {
			return // the end; a test that waits for more fails
		}
		w.mu.Lock()
		if changed {
			w.count++
			w.replay(v)
			w.checkShown(v, own)
			w.latest = v
			close(w.read)
			w.read = make(chan struct{})
		}
		w.mu.Unlock()
	}
}

func (w *fleetWorld) problem(format string, args ...any) {
	if w.problems++; w.problems < 20 {
		w.t.Errorf("snapshot %d: "+format, append([]any{w.count}, args...)...)
	}
}

// replay checks that the deltas give the snapshot (G7), and that nothing is taken back (G5).
func (w *fleetWorld) replay(v *fleetView) {
	for _, d := range v.Deltas {
		key := d.Cluster + " " + d.Query + " " + d.Namespace + "/" + d.Name
		before, had := w.shown[key]
		if d.DeltaType == kates.ObjectDelete {
			if !had || before.uid != d.UID {
				w.problem("G7: %s %s is deleted, and was %v", key, d.UID, before)
			}
			delete(w.shown, key)
			continue
		}
		if had == (d.DeltaType == kates.ObjectAdd) || had && before.uid != d.UID {
			w.problem("G7: %s of %s %s, which was %v", d.DeltaType, key, d.UID, before)
		}
		now := fleetIdentity{d.UID, d.ResourceVersion}
		id := d.Cluster + " " + string(d.UID)
		if last, was := w.newest[id]; was && !w.anew {
			order, err := resourceversion.CompareResourceVersion(now.objectRV, last.objectRV)
			if err != nil || order < 0 || order == 0 && !w.excused[d.Cluster] {
				w.problem("G5: %s comes back as %v after %v (%v)", key, now, last, err)
			}
		}
		w.shown[key], w.newest[id] = now, now
	}
	if now := v.identities(); !maps.Equal(now, w.shown) {
		w.problem("G7: the deltas give %v, and the snapshot is %v", w.shown, now)
	}
}

func (v *fleetView) identities() map[string]fleetIdentity {
	all := make(map[string]fleetIdentity)
	for name, objects := range v.Maps {
		for _, o := range objects {
			all[name+" Maps "+o.Namespace+"/"+o.Name] = fleetIdentity{o.UID, o.ResourceVersion}
		}
	}
	for _, o := range v.Secrets {
		all[o.Cluster+" Secrets "+o.Object.Namespace+"/"+o.Object.Name] = fleetIdentity{o.Object.UID, o.Object.ResourceVersion}
	}
	return all
}

// checkShown checks that there is no gap, that own writes are there (G4), and who is missing.
func (w *fleetWorld) checkShown(v *fleetView, own map[string]map[string]string) {
	of := make(map[string]map[string]int) // by name, how many steady objects of which cluster
	versions := make(map[string]string)
	count := func(name, object, from string) {
		if strings.HasPrefix(object, "keep-") {
			if of[name] == nil {
				of[name] = make(map[string]int)
			}
			of[name][from]++
		}
	}
	for name, objects := range v.Maps {
		for _, o := range objects {
			count(name, o.Name, o.Data["of"])
			versions[name+" "+o.Name] = o.ResourceVersion
		}
	}
	for _, o := range v.Secrets {
		count(o.Cluster, o.Object.Name, secrecy.Unmark(string(o.Object.Data["of"])))
	}
	for name := range w.steady {
		total := 0
		for _, n := range of[name] {
			total += n
		}
		if total != 10 || len(of[name]) != 1 && name != w.mixed {
			w.problem("G1, G8: of the 10 steady objects of %s there are %v", name, of[name])
		}
	}
	for name, c := range w.kept {
		if w.fleet.Cluster(name) != c {
			w.problem("G5: %s has become another cluster: %s", name, w.fleet.Status())
		}
	}
	for name, all := range own {
		for object, objectRV := range all {
			order, err := resourceversion.CompareResourceVersion(cmpOr(versions[name+" "+object], "0"), objectRV)
			if !w.anew && (err != nil || order < 0) {
				w.problem("G4: own write %s %s is %s, not %s", name, object, versions[name+" "+object], objectRV)
			}
		}
	}
	for _, m := range v.Missing {
		if !w.excused[m.Cluster] || m.Shown != (len(of[m.Cluster]) > 0) || m.Err == nil || m.Since.IsZero() {
			w.problem("missing: %+v", m)
		}
	}
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// excuse says which clusters may be missing from now on.
func (w *fleetWorld) excuse(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.excused)
	for _, name := range names {
		w.excused[name] = true
	}
}

// until waits for a snapshot.
func (w *fleetWorld) until(what string, is func(*fleetView) bool) *fleetView {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		v, next := w.latest, w.read
		w.mu.Unlock()
		if v != nil && is(v) {
			return v
		}
		select {
		case <-next:
		case <-deadline:
			require.Fail(w.t, "it does not come to be that "+what, "%s", w.fleet.Status())
		}
	}
}

// missing waits until exactly these clusters are missing.
func (w *fleetWorld) missing(names ...string) *fleetView {
	w.t.Helper()
	return w.until(fmt.Sprintf("%v are missing", names), func(v *fleetView) bool {
		return slices.EqualFunc(v.Missing, names, func(m fleet.Missing, name string) bool { return m.Cluster == name })
	})
}

// arrives writes an object to a cluster as another program, and waits until it is shown.
func (w *fleetWorld) arrives(cluster, name string) {
	w.t.Helper()
	r := w.remotes[cluster]
	r.put(w.t, w.t.Context(), name)
	w.until(name+" of "+cluster+" is shown", func(v *fleetView) bool {
		return slices.ContainsFunc(v.Maps[cluster], func(m *kates.ConfigMap) bool { return m.Name == name })
	})
}

// settle ends the writers, and waits until the snapshot is what the servers list (G6). A server
// may carry out a request after its writer has given up, so it is asked again while the two
// differ.
func (w *fleetWorld) settle() {
	w.t.Helper()
	w.stop()
	w.writers.Wait()
	for deadline := time.Now().Add(patience); ; {
		want := w.listed()
		w.mu.Lock()
		v, next, count := w.latest, w.read, w.count
		w.mu.Unlock()
		shown := v.identities()
		if maps.Equal(shown, want) && len(v.Missing) == 0 {
			w.t.Logf("%d snapshots", count)
			return
		}
		if time.Now().After(deadline) {
			require.Equal(w.t, want, shown, "G6: the snapshot is not what the servers list: %s", w.fleet.Status())
			require.Empty(w.t, v.Missing)
		}
		select {
		case <-next:
		case <-time.After(200 * time.Millisecond): // the servers may have changed
		}
	}
}

// listed returns what the servers have, asked without faults.
func (w *fleetWorld) listed() map[string]fleetIdentity {
	w.t.Helper()
	all := make(map[string]fleetIdentity)
	for name, r := range w.remotes {
		listed, err := r.direct.CoreV1().ConfigMaps("").List(w.t.Context(), metav1.ListOptions{})
		require.NoError(w.t, err)
		for _, o := range listed.Items {
			all[name+" Maps "+o.Namespace+"/"+o.Name] = fleetIdentity{o.UID, o.ResourceVersion}
		}
		secrets, err := r.direct.CoreV1().Secrets("").List(w.t.Context(), metav1.ListOptions{})
		require.NoError(w.t, err)
		for _, o := range secrets.Items {
			all[name+" Secrets "+o.Namespace+"/"+o.Name] = fleetIdentity{o.UID, o.ResourceVersion}
		}
	}
	return all
}
