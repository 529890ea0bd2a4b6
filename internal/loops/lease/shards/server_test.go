package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/internal/loops/lease"
)

// leases is a server of Leases, with versions, UIDs and preconditions.
type leases struct {
	*fake.FakeDynamicClient
	out bytes.Buffer

	mu       sync.Mutex
	version  int
	down     bool
	server   string
	watchers []chan struct{}
}

func newLeases() *leases {
	l := &leases{FakeDynamicClient: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{lease.Resource: "LeaseList"})}
	l.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down {
			return true, nil, errors.New("down")
		}
		handled, err := l.react(a)
		return handled, nil, err
	})
	return l
}

func (l *leases) react(a clienttesting.Action) (handled bool, err error) {
	conflict := func(name string) error {
		return apierrors.NewConflict(lease.Resource.GroupResource(), name, errors.New("it is another"))
	}
	switch a := a.(type) {
	case clienttesting.CreateActionImpl:
		l.version++
		u := a.GetObject().(*unstructured.Unstructured)
		u.SetUID(types.UID("uid-" + strconv.Itoa(l.version)))
		u.SetResourceVersion(strconv.Itoa(l.version))
	case clienttesting.UpdateActionImpl:
		u := a.GetObject().(*unstructured.Unstructured)
		if there, err := l.Tracker().Get(lease.Resource, "ns", u.GetName()); err == nil && there.(*unstructured.Unstructured).GetResourceVersion() != u.GetResourceVersion() {
			return true, conflict(u.GetName())
		}
		l.version++
		u.SetResourceVersion(strconv.Itoa(l.version))
	case clienttesting.DeleteActionImpl:
		there, err := l.Tracker().Get(lease.Resource, "ns", a.GetName())
		if err != nil {
			return false, nil
		}
		u, p := there.(*unstructured.Unstructured), a.GetDeleteOptions().Preconditions
		if *p.UID != u.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != u.GetResourceVersion() {
			return true, conflict(a.GetName())
		}
		l.version++
	case clienttesting.GetAction:
		return false, nil
	}
	for _, w := range l.watchers {
		time.AfterFunc(10*time.Millisecond, func() { signal(w) })
	}
	return false, nil
}

// shown is a watch of Leases.
type shown struct {
	*leases
	changed chan struct{}
}

func (s *shown) Changed() <-chan struct{} { return s.changed }

func (s *shown) Leases(context.Context) (all []*coordinationv1.Lease, known bool, err error) {
	list, err := s.Tracker().List(lease.Resource, lease.Resource.GroupVersion().WithKind("Lease"), "ns")
	if err != nil {
		return nil, false, err
	}
	for _, u := range list.(*unstructured.UnstructuredList).Items {
		var lease coordinationv1.Lease
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &lease); err != nil {
			return nil, false, err
		}
		all = append(all, &lease)
	}
	return all, true, nil
}

func (l *leases) setDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

func (l *leases) join(t *testing.T, identity string) *Replica {
	t.Helper()
	watch := &shown{l, make(chan struct{}, 1)}
	l.mu.Lock()
	l.watchers = append(l.watchers, watch.changed)
	l.mu.Unlock()
	r, err := Join(t.Context(), Config{
		Group: "group", Watch: watch, CatchUp: func(context.Context) error { return nil }, Moved: func() {},
		Settings: lease.Settings{
			Client: l, Server: l.server, Namespace: "ns", Identity: identity,
			Logger: funcr.New(func(_, args string) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.out.WriteString(args + "\n")
			}, funcr.Options{}),
		},
	})
	require.NoError(t, err)
	return r
}

// owners returns which replica has each of many keys.
func owners(replicas ...*Replica) (by []int) {
	for i := range 100 {
		owner := -1
		for n, r := range replicas {
			if r.Mine(fmt.Sprint("key-", i)) {
				owner = n
			}
		}
		by = append(by, owner)
	}
	return by
}
