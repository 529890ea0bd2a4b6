package kates

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/internal/loops/lease/shards"
)

// ErrKeyLost is the cause of a context that ended because another replica has the key now (see
// [Sharding]). It is also the error of writes that are not sent for that reason.
var ErrKeyLost = shards.ErrLost

// Sharding is an option of [RunEach] and of controllers. It divides the keys among the replicas
// that have the same Name. Each key belongs to one replica, which alone calls the function for
// it.
//
//	shards := kates.Sharding{Namespace: "ingress", Name: "tenants"}
//	kates.RunEach(ctx, client, rebuild, queries, shards)
//
// # What a replica watches
//
// Where the keys can be divided as a server can select objects, the watches of a replica bring its
// part alone: memory falls with the number of replicas. By says by what: the namespace, or the
// UID. A server with sharded list and watch (KEP-5866; the feature gate ShardedListAndWatch of
// Kubernetes 1.36, off by default) sends that part alone, so network and CPU fall, too. From any
// other server everything comes, and the rest is dropped here. [ShardStatus] has which it is.
//
// Of RunEach, a query is divided if its Key is [ByNamespace], or [ByUID]. One with another Key is
// watched whole, and so is one without a Key, a [Lookup], one with Refs, and one that Refs name.
// Of a controller, the root and what it owns are divided, and all other fields are whole. If
// nothing can be divided, replicas divide the keys by their hashes, and each watches everything.
//
// A controller divides its roots by their UIDs, however many namespaces they are in. What they own
// has other UIDs. The server sends all of it, and the replica drops what is owned by others'
// roots. With [ShardByNamespace] the server selects both, and a namespace is one piece. By UID two
// roots of one name are two: when a root is deleted and made again, the departure of the former
// one may be reconciled by one replica, while another one begins with the new one.
//
// Whole-snapshot programs ([Run]) are not sharded: each part of their output may depend on any
// object.
//
// # Who has which keys
//
// Each replica has a Lease of its own in Namespace, labelled kates.io/shards=Name, and watches
// those of the others. Divided watches go by ranges of hashes, which follow the replicas that are
// there and the objects that they have. When a replica comes or goes, only the keys move that it
// gets or had, and keys of replicas that have too many. A replica whose part changes lists its new
// part. The first replica of a
// group, and those that are there when others come, wait RetryPeriod for more. Other keys move by
// rendezvous hashing. As long as one member of the group divides otherwise (a former version of
// this library, another By), all divide keys by their hashes, and watch everything.
//
// A replica that gains a key begins with it when the former owner has said that its work for the
// key has ended, and its own watches have all of the key's objects, as new as the server is then.
// Its function is called then, though nothing may have changed. A key that a replica loses is not
// one that is gone: its function is not called. A replica that ends gives its keys up at once. The
// keys of one that dies or stops move when its Lease has expired, by what the others observe of
// its renewals: their clocks need not agree, but must run at the same speed.
//
// A replica that is about to lose a key takes no more turns of it. A call under way may go on for
// LeaseDuration; then its context is cancelled, and after LeaseDuration once more the others do
// not wait for it any longer. If the replica's own Lease is lost, because the server does not
// answer or the process was stopped, the contexts of all its calls are cancelled, with a
// [context.Cause] of [ErrKeyLost], and it joins again by itself. If a call was cancelled in this
// way, its error is no failure: it is not logged, and the next owner of the key is called without
// a backoff.
//
// The call for a key that is gone (an empty snapshot, a root that has departed) goes to the key's
// owner at that time. If the key was moving from one replica to another, or the owner had not
// been called for it yet, it goes to nobody. Use a finalizer where none may be missed.
//
// The function is called for each key that the replica gains. If a call for the key was about to
// begin at that moment, there may be two calls.
//
// Deltas are about the replica's own calls: they say what has changed since its last call for the
// key that returned no error, also while another replica had the key. A key that was gone
// meanwhile begins anew.
//
// [Client.Status] says whether the replica is a member, of how many, and what is wrong, and
// [Client.Ready] waits for the first membership, as for the Lease of a [LeaderElection].
//
// Writes are fenced, as [LeaderElection] describes it.
//
// It needs the rights to get, list, watch, create, update and delete leases (coordination.k8s.io)
// in Namespace. Renewals are not subject to the client's rate limit. client-go's fake has neither
// versions nor preconditions: replicas on it divide the keys, for tests, and none is stopped.
type Sharding struct {
	// Namespace of the Leases. Default: the client's.
	Namespace string
	// Name of the group of replicas: a DNS label.
	Name string
	// Identity of this replica, unique at any time. Default: as that of [LeaderElection]. Keys go
	// by it: a replica that comes back under the same Identity has the same keys. Under the
	// default one it joins again at once when its work has ended, and does not wait until its own
	// former Lease has expired. Of a member and a copy of its process, the one that renews later
	// loses its keys, within RetryPeriod, and waits until the other one is gone.
	Identity string
	// LeaseDuration is how long others wait for a renewal before they take the keys: whole
	// seconds. Default 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a replica tries to renew before it gives its keys up: less than
	// LeaseDuration. Default 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is between two renewals: less than RenewDeadline divided by 1.2. Default 2 s.
	RetryPeriod time.Duration
	// By is what is hashed to divide the keys. Default: of [RunEach] the namespace, if a query has
	// the Key [ByNamespace], or the UID, if one has [ByUID], and else the key; of a controller the
	// UID of the root. On a fake it is always the key.
	By ShardBy
}

func (s Sharding) applyToRun(r *runSettings) {
	if r.sharding != nil {
		r.reject(errors.New("a run is a shard of one group, not of several"))
	}
	if err := s.checkBy(); err != nil {
		r.reject(err)
	}
	r.sharding = &s
}

func (s Sharding) config(c *Client) shards.Config {
	return shards.Config{
		Settings: c.leaseSettings(s.Namespace, s.Identity, s.LeaseDuration, s.RenewDeadline, s.RetryPeriod), Group: s.Name,
	}
}

// shard is this replica's part of the keys.
func (s Sharding) shard(c *Client) *keyed.Shard {
	config := s.config(c)
	return &keyed.Shard{Config: config, Watch: func(ctx context.Context) (keyed.LeaseWatch, error) {
		return c.watchLeases(ctx, config.Namespace, config.Group)
	}}
}

// ShardBy says by what replicas divide the keys of a run ([Sharding.By]).
type ShardBy string

// The ways to divide keys.
const (
	// ShardByNamespace divides by the hashes of namespaces. Of [RunEach], queries whose Key is
	// [ByNamespace] bring the replica's part alone; of a controller, so do the root and what it
	// owns: both are in one namespace.
	ShardByNamespace ShardBy = "namespace"
	// ShardByUID divides by the hashes of UIDs. Of [RunEach], queries whose Key is [ByUID] bring
	// the replica's part alone. Of a controller, so does the root. What it owns is sent whole, and
	// what belongs to other replicas' roots is dropped as it comes.
	ShardByUID ShardBy = "uid"
	// ShardByKey divides by the hashes of the keys. No server can select by these: each replica
	// watches everything.
	ShardByKey ShardBy = "key"
)

// sharingOf is the division as partitions know it, nil if their queries are whole.
func sharingOf(d compile.Division) *partition.Sharing {
	if d.Field == "" {
		return nil
	}
	return &partition.Sharing{Field: d.Of, Place: d.Place}
}

// checkBy returns an error for a way to divide that does not exist.
func (s Sharding) checkBy() error {
	switch s.By {
	case "", ShardByNamespace, ShardByUID, ShardByKey:
		return nil
	}
	return fmt.Errorf("sharding by %q: there are %s, %s and %s", s.By, ShardByNamespace, ShardByUID, ShardByKey)
}

// divideKeys finds out how the replicas of a RunEach divide its keys.
func (s *runSettings) divideKeys(c *Client) (err error) {
	if s.sharding != nil {
		s.division, err = c.compiler().DivideKeys(compile.By(s.sharding.By), wantedOf(s.queries))
	}
	return err
}
