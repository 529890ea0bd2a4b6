package multicluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/multicluster-runtime/providers/clusters"

	"github.com/kates-go/kates/fleet"
)

// stub is a cluster that has a configuration, and counts what it is asked for.
type stub struct {
	cluster.Cluster
	config *rest.Config
	fail   chan error

	mu      sync.Mutex
	indexed []string
}

func newStub(host string) *stub {
	return &stub{config: &rest.Config{Host: host}, fail: make(chan error, 1)}
}

// started is a cache that has nothing to wait for.
type started struct{ cache.Cache }

func (started) WaitForCacheSync(ctx context.Context) bool { return ctx.Err() == nil }

func (s *stub) GetCache() cache.Cache { return started{} }

func (s *stub) GetConfig() *rest.Config { return s.config }

func (s *stub) GetFieldIndexer() client.FieldIndexer { return s }

func (s *stub) IndexField(_ context.Context, _ client.Object, field string, _ client.IndexerFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexed = append(s.indexed, field)
	return nil
}

func (s *stub) indexes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.indexed)
}

func (s *stub) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.fail:
		return err
	}
}

// said is what a source has said.
type said struct {
	mu   sync.Mutex
	sets int
	last []string
	full []fleet.Member
}

func (s *said) set(all []fleet.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets++
	s.last, s.full = nil, all
	for _, m := range all {
		s.last = append(s.last, m.Name+"="+m.Config.Host)
	}
}

func (s *said) is(t *testing.T, sets int, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets != sets || !slices.Equal(s.last, want) {
		t.Fatalf("after %d calls %v, and should be %v after %d", s.sets, s.last, want, sets)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a source until the test ends.
func run(t *testing.T, s fleet.Source) (*said, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var heard said
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx, heard.set); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	end := func() { cancel(); <-done }
	t.Cleanup(end)
	return &heard, end
}

// The provider is one of multicluster-runtime's own.
func TestAProvidersClustersAreMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := clusters.New()
		must(t, p.Add(t.Context(), "b", newStub("https://b")))
		heard, _ := run(t, NewSource("clusters", p))
		synctest.Wait()
		heard.is(t, 0)
		must(t, p.Add(t.Context(), "a", newStub("https://a")))
		time.Sleep(settle)
		synctest.Wait()
		heard.is(t, 1, "a=https://a", "b=https://b")
		must(t, p.Add(t.Context(), "c", newStub("https://c")))
		synctest.Wait()
		heard.is(t, 2, "a=https://a", "b=https://b", "c=https://c")
		p.Remove("a")
		time.Sleep(Linger - time.Second)
		synctest.Wait()
		heard.is(t, 2, "a=https://a", "b=https://b", "c=https://c")
		time.Sleep(time.Second)
		synctest.Wait()
		heard.is(t, 3, "b=https://b", "c=https://c")
	})
}

// A provider that rotates credentials disengages the cluster until it has reached it anew.
func TestAClusterThatIsEngagedAgainInTimeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSource("by hand", nil) // a manager would engage
		heard, _ := run(t, s)
		first, disengage := context.WithCancel(t.Context())
		must(t, s.Engage(first, "a", newStub("https://a")))
		time.Sleep(settle)
		synctest.Wait()
		heard.is(t, 1, "a=https://a")
		version := heard.full[0].Version
		disengage()
		time.Sleep(Linger / 2)
		must(t, s.Engage(t.Context(), "a", newStub("https://a")))
		time.Sleep(2 * Linger)
		synctest.Wait()
		if heard.is(t, 1, "a=https://a"); heard.full[0].Version != version {
			t.Error("an equal configuration is another version")
		}
		must(t, s.Engage(t.Context(), "a", newStub("https://new")))
		synctest.Wait()
		if heard.is(t, 2, "a=https://new"); heard.full[0].Version == version {
			t.Error("another configuration is the same version")
		}
		if s.Engage(t.Context(), "b", &stub{}) == nil {
			t.Error("a cluster without a configuration is accepted")
		}
	})
}

// failing is a provider that engages a cluster and fails.
type failing struct{ starts int }

func (f *failing) Start(ctx context.Context, aware multicluster.Aware) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.starts++; f.starts == 1 {
		if err := aware.Engage(ctx, "a", newStub("https://a")); err != nil {
			return err
		}
		time.Sleep(time.Minute)
		return errors.New("broken")
	}
	err := aware.Engage(ctx, "b", newStub("https://b"))
	<-ctx.Done()
	return err
}

func TestTheClustersOfAProviderThatFailsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{}
		s := NewSource("failing", f)
		var heard said
		if err := s.Run(t.Context(), heard.set); err == nil || err.Error() != "broken" {
			t.Fatal(err)
		}
		heard.is(t, 1, "a=https://a")
		again, end := run(t, s)
		time.Sleep(settle)
		synctest.Wait()
		again.is(t, 1, "a=https://a", "b=https://b")
		time.Sleep(Linger)
		synctest.Wait()
		again.is(t, 2, "b=https://b") // it was not engaged again
		end()
		again.is(t, 2, "b=https://b")
	})
}

func ExampleNewSource() {
	provider := clusters.New() // or any other provider
	if err := provider.Add(context.Background(), "prod", newStub("https://127.0.0.1:1")); err != nil {
		panic(err)
	}
	f, err := fleet.New(fleet.Options{Sources: []fleet.Source{NewSource("multicluster-runtime", provider)}})
	if err != nil {
		panic(err)
	}
	defer f.Close()
	changed, stop := f.Listen()
	defer stop()
	for f.Cluster("prod") == nil {
		<-changed
	}
	fmt.Println(f.Cluster("prod").Config().Host)
	// Output: https://127.0.0.1:1
}
