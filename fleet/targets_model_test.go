package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates/katestest"
)

// TestModelG1G6TargetsShowWhatTheClustersHold lets owners want and drop targets while objects,
// rights and
// clusters come and go. After each step a reader either shows exactly what its cluster holds, or
// says that this is not known. Once known, it stays so while the cluster stays. Whenever all is
// quiet, each owner was activated whose targets have changed.
func TestModelG1G6TargetsShowWhatTheClustersHold(t *testing.T) {
	rounds.Check(t, func(rt *rapid.T, step func()) {
		script := rapid.SliceOfN(rapid.Custom(drawAction), 40, 80).Draw(rt, "script")
		var err error
		synctest.Test(t, func(*testing.T) { err = runTargets(script, step) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// action is a step of the model. What its numbers mean depends on its verb.
type action struct {
	verb    string
	owner   string
	targets []Target
	cluster string
	object  string // namespace/name of an object
	label   string
	pause   time.Duration
}

func drawAction(t *rapid.T) (a action) {
	a.verb = rapid.SampledFrom([]string{
		"want", "want", "want", "keep", "keep", "drop", "write", "write", "write", "delete", "wait", "wait", "long wait",
		"refuse", "allow", "leave", "come", "replace",
	}).Draw(t, "verb")
	a.owner = fmt.Sprint("owner", rapid.IntRange(0, 4).Draw(t, "owner"))
	a.cluster = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cluster")
	object := func(label string) (ns, name string) {
		return fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, label+" namespace")), fmt.Sprint("x", rapid.IntRange(0, 2).Draw(t, label+" name"))
	}
	switch a.verb {
	case "want", "keep":
		most := 1
		if a.verb == "keep" {
			most = 6
		}
		for range rapid.IntRange(1, most).Draw(t, "number") {
			target := Target{Cluster: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "target's cluster"), Kind: "configmaps"}
			ns, name := object("target")
			switch rapid.IntRange(0, 7).Draw(t, "form") {
			case 0:
				target.Namespace = ns
			case 1:
				target.Namespace, target.LabelSelector = ns, "app=1"
			case 2:
				target.LabelSelector = "app=1"
			case 3:
				if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
					break
				}
				fallthrough
			default:
				target.Namespace, target.Name = ns, name
			}
			a.targets = append(a.targets, target)
		}
	case "write", "delete", "refuse":
		ns, name := object("object")
		a.object, a.label = ns+"/"+name, fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "label"))
		if a.verb == "refuse" && rapid.Bool().Draw(t, "everywhere") {
			a.object = ""
		}
	case "wait":
		a.pause = time.Duration(rapid.IntRange(0, 3000).Draw(t, "milliseconds")) * time.Millisecond
	case "long wait":
		a.pause = time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second
	}
	return a
}

// targetPlace is a cluster of the model.
type targetPlace struct {
	*katestest.Fake
	holds map[string]string // namespace/name to label

	mu      sync.Mutex
	refused map[string]bool // namespaces; "" is the list of all
}

func newTargetPlace(uid string) (*targetPlace, error) {
	var all []runtime.Object
	for _, name := range []string{"kube-system", "n0", "n1", "n2", "n3", "n4", "n5"} { // a refusal in a namespace that is gone is no refusal
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		ns.SetName(name)
		ns.SetUID(types.UID(name + " " + uid))
		all = append(all, ns)
	}
	k, err := newModelFake(all...)
	if err != nil {
		return nil, err
	}
	p := &targetPlace{Fake: k, holds: make(map[string]string), refused: make(map[string]bool)}
	k.Dynamic.PrependReactor("list", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.refused[a.GetNamespace()] {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
		}
		return false, nil, nil
	})
	return p, nil
}

// targetsModel is what is to be.
type targetsModel struct {
	fleet   *Fleet
	targets *Targets
	told    activations
	places  map[string]*targetPlace
	all     []*targetPlace
	there   map[string]bool
	// quarrels are the clusters that have refused something. There, targets may become unknown.
	quarrels map[string]bool
	owned    map[string]map[Target]*Reader
	known    map[*Reader]bool   // since the last step
	seen     map[*Reader]string // when all was quiet the last time
}

func runTargets(script []action, taken func()) error {
	m := &targetsModel{
		places: make(map[string]*targetPlace), there: make(map[string]bool), quarrels: make(map[string]bool),
		owned: make(map[string]map[Target]*Reader), known: make(map[*Reader]bool), seen: make(map[*Reader]string),
	}
	var err error
	if m.fleet, err = New(Options{Probe: time.Hour}); err != nil {
		return err
	}
	defer func() {
		m.fleet.Close()
		for _, p := range m.all {
			p.Close()
		}
	}()
	m.targets = m.fleet.Targets(TargetOptions{Activate: m.told.activate})
	for _, name := range []string{"a", "b"} {
		if err := m.replace(name); err != nil {
			return err
		}
	}
	for i, a := range script {
		err := m.do(a)
		if err == nil {
			err = m.check()
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w\n%s\n%s", i, a.verb, err, m.targets.Status(), m.fleet.Status())
		}
		taken()
	}
	if err := m.settle(); err != nil {
		return fmt.Errorf("in the end: %w\n%s", err, m.targets.Status())
	}
	return nil
}

// replace puts another cluster in the place of one.
func (m *targetsModel) replace(name string) error {
	p, err := newTargetPlace(fmt.Sprint(len(m.all)))
	if err != nil {
		return err
	}
	m.places[name], m.all = p, append(m.all, p)
	return m.come(name)
}

func (m *targetsModel) come(name string) error {
	m.forget(name)
	m.there[name] = true
	err := m.fleet.Set(Member{Name: name, Client: m.places[name].Client})
	synctest.Wait()
	return err
}

// forget notes that what was known of a cluster is not known any more.
func (m *targetsModel) forget(name string) {
	for r := range m.known {
		if r.target.Cluster == name {
			delete(m.known, r)
		}
	}
}

func (m *targetsModel) do(a action) error {
	ctx, p := m.fleet.ctx, m.places[a.cluster]
	if a.verb == "write" || a.verb == "delete" {
		synctest.Wait() // client-go's fake has no versions: a list that is on its way may be older
	}
	switch a.verb {
	case "want":
		r, err := m.targets.Want(a.owner, a.targets[0])
		if err != nil {
			return err
		}
		m.has(a.owner, r)
	case "keep":
		readers, err := m.targets.Keep(a.owner, a.targets...)
		if err != nil {
			return err
		}
		before := m.owned[a.owner]
		m.owned[a.owner] = make(map[Target]*Reader)
		for _, r := range readers {
			if old := before[r.target]; old != nil {
				r = old // it still works
			}
			m.has(a.owner, r)
		}
	case "drop":
		m.targets.Drop(a.owner)
		for _, r := range m.owned[a.owner] {
			if _, err := r.List(); !errors.Is(err, ErrTargetDropped) {
				return fmt.Errorf("a dropped reader returns %v", err)
			}
		}
		delete(m.owned, a.owner)
	case "write":
		return p.write(ctx, a)
	case "delete":
		ns, name, _ := strings.Cut(a.object, "/")
		if _, there := p.holds[a.object]; there {
			delete(p.holds, a.object)
			return p.Client.Delete(ctx, targetMap(ns, name), nil)
		}
	case "refuse", "allow":
		ns, _, _ := strings.Cut(a.object, "/")
		m.quarrels[a.cluster] = true
		p.allow(a.verb == "allow", ns)
	case "wait":
		time.Sleep(a.pause)
	case "long wait":
		time.Sleep(a.pause)
		return m.quiet()
	case "leave":
		m.forget(a.cluster)
		m.there[a.cluster] = false
		m.fleet.Remove(a.cluster)
		synctest.Wait()
	case "come":
		if !m.there[a.cluster] {
			return m.come(a.cluster)
		}
	case "replace":
		return m.replace(a.cluster)
	}
	return nil
}

func (m *targetsModel) has(owner string, r *Reader) {
	if m.owned[owner] == nil {
		m.owned[owner] = make(map[Target]*Reader)
	}
	if m.owned[owner][r.target] == nil {
		m.owned[owner][r.target] = r
	}
}

func (p *targetPlace) write(ctx context.Context, a action) error {
	ns, name, _ := strings.Cut(a.object, "/")
	cm := targetMap(ns, name)
	cm.Labels = map[string]string{"app": a.label}
	_, there := p.holds[a.object]
	p.holds[a.object] = a.label
	if there {
		return p.Client.Update(ctx, cm, nil)
	}
	return p.Client.Create(ctx, cm, nil)
}

func (p *targetPlace) allow(all bool, ns string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all {
		clear(p.refused)
	} else {
		p.refused[ns] = true
	}
}

// holding is what a target's reader is to show.
func (p *targetPlace) holding(t Target) (all []string) {
	selector, _ := labels.Parse(t.LabelSelector)
	for key, label := range p.holds {
		ns, name, _ := strings.Cut(key, "/")
		if (t.Namespace == "" || t.Namespace == ns) && (t.Name == "" || t.Name == name) && selector.Matches(labels.Set{"app": label}) {
			all = append(all, key+"="+label)
		}
	}
	slices.Sort(all)
	return all
}

// check compares each reader with what its cluster holds.
func (m *targetsModel) check() error {
	for owner, all := range m.owned {
		for target, r := range all {
			shown, err := r.List()
			if errors.Is(err, ErrNotKnown) {
				if m.known[r] && !m.quarrels[target.Cluster] {
					return fmt.Errorf("%s of %s was known: %w", target, owner, err)
				}
				delete(m.known, r)
				continue
			}
			if err != nil {
				return err
			}
			m.known[r] = true
			var got []string
			for _, o := range shown {
				got = append(got, o.GetNamespace()+"/"+o.GetName()+"="+o.GetLabels()["app"])
			}
			if want := m.places[target.Cluster].holding(target); !m.there[target.Cluster] || !slices.Equal(got, want) {
				return fmt.Errorf("%s of %s shows %v, not %v", target, owner, got, want)
			}
		}
	}
	return nil
}

// quiet checks that each owner was activated whose targets have changed since the last time.
func (m *targetsModel) quiet() error {
	time.Sleep(2 * time.Second)
	told := m.told.taken()
	seen := make(map[*Reader]string)
	for owner, all := range m.owned {
		for target, r := range all {
			shown, err := r.List()
			text := ""
			if err == nil {
				text = "known"
			}
			for _, o := range shown {
				text += fmt.Sprintf(" %s/%s/%s=%s", o.GetNamespace(), o.GetName(), o.GetUID(), o.GetLabels()["app"])
			}
			before, had := m.seen[r]
			if had && before != text && !slices.Contains(told, owner) {
				return fmt.Errorf("%s was not activated: %s was %q, and is %q", owner, target, before, text)
			}
			seen[r] = text
		}
	}
	m.seen = seen
	return nil
}

// settle lets everything come back: then all is known, and no more is watched than is needed.
func (m *targetsModel) settle() error {
	for name, p := range m.places {
		p.allow(true, "")
		if !m.there[name] {
			if err := m.come(name); err != nil {
				return err
			}
		}
	}
	time.Sleep(20 * time.Minute)
	synctest.Wait()
	if err := m.check(); err != nil {
		return err
	}
	watched := make(map[string]bool)
	for _, all := range m.owned {
		for target, r := range all {
			watched[target.Cluster] = true
			if err := r.Err(); err != nil {
				return err
			}
		}
	}
	if err := m.targets.Status().Err(); err != nil {
		return err
	}
	for name, p := range m.places {
		if n := len(p.Client.Status().Queries); n > 1 || (n == 1) != watched[name] {
			return fmt.Errorf("%d watches in %s", n, name)
		}
	}
	for owner := range m.owned {
		m.targets.Drop(owner)
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	for name, p := range m.places {
		if n := len(p.Client.Status().Queries); n > 0 {
			return fmt.Errorf("%d watches are left in %s", n, name)
		}
	}
	if n := len(m.targets.Status().Watches); n > 0 {
		return fmt.Errorf("%d watches are left", n)
	}
	return nil
}
