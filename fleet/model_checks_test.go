package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

func (t *things) versions() map[string]version {
	all := make(map[string]version)
	for name, objects := range t.Maps {
		for _, o := range objects {
			all[name+" Maps "+o.Name] = versionOf(o)
		}
	}
	for _, o := range t.Services {
		all[o.Cluster+" Services "+o.Object.Name] = versionOf(o.Object)
	}
	return all
}

// ordered checks G9.
func ordered(snap *things) error {
	good := slices.IsSortedFunc(snap.Services, func(a, b Object[*kates.Service]) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	for _, objects := range snap.Maps {
		good = good && slices.IsSortedFunc(objects, func(a, b *kates.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	}
	if !good {
		return fmt.Errorf("G9: %s", snap.text())
	}
	return nil
}

// check checks what is shown of one cluster: all of one cluster (G1), with own writes (G4).
func (m *fleetModel) check(name string, snap *things) error {
	var keep, also types.UID
	all := make(map[string]version)
	for _, o := range snap.Maps[name] {
		if all["configmaps "+o.Name] = versionOf(o); o.Name == "keep" {
			keep = o.UID
		}
	}
	for _, o := range snap.Services {
		if o.Cluster != name {
			continue
		}
		if all["services "+o.Object.Name] = versionOf(o.Object); o.Object.Name == "keep" {
			also = o.Object.UID
		}
	}
	of := -1
	for i := range m.fakes {
		if keep == types.UID(fmt.Sprint("ConfigMap of ", i)) && also == types.UID(fmt.Sprint("Service of ", i)) {
			of = i
		}
	}
	if of < 0 {
		return fmt.Errorf("G1: it shows %q and %q", keep, also)
	}
	behind, is := m.members[name]
	if !is {
		return errors.New("it has left")
	}
	if slices.ContainsFunc(snap.Missing, func(x Missing) bool { return x.Cluster == name && x.Err == errNotYet }) {
		return nil // the former one, until the other is complete
	}
	if behind != of {
		return fmt.Errorf("G5: it is cluster %d, and is shown as %d: %+v", behind, of, snap.Missing)
	}
	for key, wrote := range m.own[name] {
		if all[key] != wrote {
			return fmt.Errorf("G4: own write %s %v is shown as %v", key, wrote, all[key])
		}
	}
	return nil
}

// gap checks that what was shown stays, and that what is not shown is missing.
func (m *fleetModel) gap(snap *things) error {
	missing := make(map[string]bool)
	for _, x := range snap.Missing {
		_, shown := snap.Maps[x.Cluster]
		_, is := m.members[x.Cluster]
		if missing[x.Cluster] || shown != x.Shown || !is || x.Err == nil || x.Since.IsZero() {
			return fmt.Errorf("missing: %+v, shown: %t", x, shown)
		}
		missing[x.Cluster] = true
	}
	for name := range m.members {
		_, shown := snap.Maps[name]
		if !shown && !missing[name] {
			return fmt.Errorf("G1: %s is neither shown nor missing: %s", name, snap.text())
		}
	}
	return nil
}

// sharing checks that what has not changed is the same slice.
func (m *fleetModel) sharing(snap *things) error {
	if m.last == nil {
		return nil
	}
	touched := make(map[string]bool)
	for _, d := range snap.Deltas {
		touched[d.Cluster+" "+d.Query] = true
		touched[d.Query] = true
	}
	for name, objects := range snap.Maps {
		before := m.last.Maps[name]
		if !touched[name+" Maps"] && len(before) > 0 && &before[0] != &objects[0] {
			return fmt.Errorf("%s's config maps have not changed, and are another slice", name)
		}
	}
	return nil
}

// settle heals all clusters, and checks that what is shown is what they hold (G6).
func (m *fleetModel) settle() error {
	for i := range m.down {
		m.down[i].Store(false)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	if err := m.look(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	want := make(map[string]version)
	for name, i := range m.members {
		for kind, query := range map[string]string{"configmaps": "Maps", "services": "Services"} {
			list, err := m.fakes[i].Dynamic.Resource(resourceOf(kind)).List(m.fleet.ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, o := range list.Items {
				want[name+" "+query+" "+o.GetName()] = versionOf(&o)
			}
		}
	}
	if !maps.Equal(want, m.shown) || m.last == nil || len(m.last.Missing) > 0 {
		return fmt.Errorf("G6: the clusters hold %v, and shown is %v\n%s", want, m.shown, m.fleet.Status())
	}
	return nil
}
