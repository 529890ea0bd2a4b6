package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// MembersEnv says how many processes share the pods. IdentityEnv is which of them this is.
const (
	MembersEnv  = "KATES_BENCH_MEMBERS"
	IdentityEnv = "KATES_BENCH_IDENTITY"
)

// shared is what a replica holds of a namespace.
type shared struct {
	Pods []*corev1.Pod
}

// sharded is a replica of several, each of which has a part of the namespaces.
type sharded struct {
	client *kates.Client
	end    context.CancelFunc
	ended  chan error
	signal

	mu   sync.Mutex
	last map[string]*shared // what the last call for each namespace was handed
}

func newKatesSharded() Consumer {
	return &sharded{last: make(map[string]*shared), ended: make(chan error, 1)}
}

// Start returns when all members are there, and this one has been called for each of its
// namespaces.
func (s *sharded) Start(ctx context.Context, config *rest.Config) (err error) {
	members, err := strconv.Atoi(os.Getenv(MembersEnv))
	if err != nil {
		return fmt.Errorf("the number of members, %s: %w", MembersEnv, err)
	}
	s.client, err = kates.NewClientFromRESTConfig(config, kates.WithInterval(0), kates.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	ctx, s.end = context.WithCancel(ctx)
	go func() {
		s.ended <- kates.RunEach(ctx, s.client, s.take, kates.Query{Name: "Pods", Key: kates.ByNamespace},
			kates.Sharding{Namespace: "default", Name: "bench", Identity: os.Getenv(IdentityEnv)})
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-s.ended:
			s.ended <- err
			return errors.Join(errors.New("the run has ended"), err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if ready, err := s.ready(members); ready || err != nil {
			return err
		}
	}
}

// ready reports whether this replica has its part of what so many divide.
func (s *sharded) ready(members int) (bool, error) {
	shards := s.client.Status().Shards
	if len(shards) != 1 || shards[0].Members != members || shards[0].Ranges == 0 || shards[0].Keys == 0 {
		return false, nil
	}
	if strings.Contains(shards[0].Streams, "does not shard") {
		return false, fmt.Errorf("the server must send parts of a list: %s", shards[0].Streams)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.last) >= shards[0].Keys, nil
}

func (s *sharded) take(_ context.Context, namespace string, snap *shared) error {
	s.mu.Lock()
	s.last[namespace] = snap
	s.mu.Unlock()
	s.set()
	return nil
}

// Snapshot counts what the replica holds.
func (s *sharded) Snapshot(context.Context) (View, error) {
	v := View{All: chain()}
	for _, q := range s.client.Status().Queries {
		if q.Name == "Pods" {
			v.Objects += q.Objects
		}
	}
	return v, nil
}

// Close ends the run, which gives the namespaces up, and the client.
func (s *sharded) Close() {
	if s.end != nil {
		s.end()
		<-s.ended
	}
	if s.client != nil {
		s.client.Close()
	}
}
