package multicluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates/katestest"
)

// recorder is told which clusters are engaged.
type recorder struct {
	mu      sync.Mutex
	engaged map[string]context.Context
	refuse  map[string]error
	changed chan struct{}
}

func newRecorder() *recorder {
	return &recorder{engaged: make(map[string]context.Context), refuse: make(map[string]error), changed: make(chan struct{}, 100)}
}

func (r *recorder) Engage(ctx context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refuse[name.String()]; err != nil {
		delete(r.refuse, name.String())
		return err
	}
	r.engaged[name.String()] = ctx
	r.changed <- struct{}{}
	context.AfterFunc(ctx, func() { r.changed <- struct{}{} })
	return nil
}

func (r *recorder) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// of returns the context of an engaged cluster, or nil.
func (r *recorder) of(name string) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx := r.engaged[name]; ctx != nil && ctx.Err() == nil {
		return ctx
	}
	return nil
}

// until waits until something is so.
func (r *recorder) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-r.changed:
		case <-t.Context().Done():
			t.Fatal("waiting until " + what)
		}
	}
}

func newFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(fleet.Options{})
	must(t, err)
	t.Cleanup(f.Close)
	return f
}

// start runs a provider until the test ends.
func start(t *testing.T, p *Provider, aware multicluster.Aware) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Start(ctx, aware) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
}

func TestTheClustersOfAFleetAreEngagedAndDisengaged(t *testing.T) {
	f, r := newFleet(t), newRecorder()
	p := NewProvider(f, Options{})
	must(t, f.Add("a", &rest.Config{Host: "http://127.0.0.1:1"}))
	must(t, f.Set(fleet.Member{Name: "by client", Client: katestest.NewClient(t)}))
	start(t, p, r)
	r.until(t, "a is engaged", func() bool { return r.of("a") != nil })
	must(t, f.Add("b", &rest.Config{Host: "http://127.0.0.1:2"}))
	r.until(t, "b is engaged", func() bool { return r.of("b") != nil })
	a, err := p.Get(t.Context(), "a")
	if must(t, err); a.GetConfig().Host != "http://127.0.0.1:1" || a.GetConfig() == f.Cluster("a").Config() {
		t.Errorf("%v", a.GetConfig())
	}
	f.Remove("a")
	r.until(t, "a is disengaged", func() bool { return r.of("a") == nil })
	for _, name := range []multicluster.ClusterName{"a", "by client", "nobody"} {
		if _, err := p.Get(t.Context(), name); !errors.Is(err, multicluster.ErrClusterNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.of("b") == nil {
		t.Error("b has left, too")
	}
}

// One that fails is made anew, and the others do not notice.
func TestAClusterThatFailsIsEngagedAgain(t *testing.T) {
	f, r := newFleet(t), newRecorder()
	r.refuse["b"] = errors.New("not now")
	var mu sync.Mutex
	made := make(map[string][]*stub)
	p := NewProvider(f, Options{NewCluster: func(c *rest.Config, _ ...cluster.Option) (cluster.Cluster, error) {
		mu.Lock()
		defer mu.Unlock()
		s := newStub(c.Host)
		made[c.Host] = append(made[c.Host], s)
		return s, nil
	}})
	must(t, p.IndexField(t.Context(), &corev1.Pod{}, "early", nil))
	must(t, f.Add("a", &rest.Config{Host: "http://127.0.0.1:1"}))
	must(t, f.Add("b", &rest.Config{Host: "http://127.0.0.1:2"}))
	start(t, p, r)
	r.until(t, "both are engaged", func() bool { return r.of("a") != nil && r.of("b") != nil })
	b := r.of("b")
	must(t, p.IndexField(t.Context(), &corev1.Pod{}, "late", nil))
	mu.Lock()
	first := made["http://127.0.0.1:1"][0]
	mu.Unlock()
	if got := first.indexes(); !slices.Equal(got, []string{"early", "late"}) {
		t.Errorf("indexed: %v", got)
	}
	first.fail <- errors.New("broken")
	r.until(t, "a is engaged again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(made["http://127.0.0.1:1"]) == 2 && r.of("a") != nil
	})
	mu.Lock()
	second := made["http://127.0.0.1:1"][1]
	mu.Unlock()
	if got := second.indexes(); !slices.Equal(got, []string{"early", "late"}) {
		t.Errorf("indexed: %v", got)
	}
	if r.of("b") != b {
		t.Error("the other was disengaged")
	}
}

// A manager runs the provider, and tells a source what it engages: from fleet to fleet.
func TestAManagerRunsAFleetAndFillsAnother(t *testing.T) {
	f := newFleet(t)
	must(t, f.Add("a", &rest.Config{Host: "http://127.0.0.1:1"}))
	local, err := manager.New(&rest.Config{Host: "http://127.0.0.1:3"}, manager.Options{Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	m, err := mcmanager.WithMultiCluster(local, NewProvider(f, Options{}))
	must(t, err)
	s := NewSource("a manager", nil)
	must(t, m.Add(s))
	other, err := fleet.New(fleet.Options{Sources: []fleet.Source{s}})
	must(t, err)
	t.Cleanup(other.Close)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Start(ctx) }()
	defer func() { must(t, <-done) }()
	defer cancel()
	changed, stop := other.Listen()
	defer stop()
	for other.Cluster("a") == nil {
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal(other.Status())
		}
	}
	if got := other.Cluster("a").Config().Host; got != "http://127.0.0.1:1" {
		t.Error(got)
	}
	if c, err := m.GetCluster(ctx, "a"); err != nil || c.GetConfig().Host != "http://127.0.0.1:1" {
		t.Error(err)
	}
}

// A program with controllers of multicluster-runtime gets its clusters from a fleet.
func ExampleNewProvider() {
	f, err := fleet.New(fleet.Options{}) // with sources
	if err != nil {
		panic(err)
	}
	defer f.Close()
	provider := NewProvider(f, Options{})
	m, err := mcmanager.New(&rest.Config{Host: "http://127.0.0.1:3"}, provider, manager.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(m.GetProvider() == provider)
	// Output: true
}
