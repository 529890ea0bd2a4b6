package shards

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/loops/lease"
)

const (
	// Label of the Leases of a group; its value is the group's name.
	Label = "kates.io/shards"
	// claimAnnotation of a Lease has the members by which its holder goes. Where that goes by a
	// plan, it has the holder alone, so that former versions of this package, which know no plans,
	// take every key for the holder's.
	claimAnnotation = "kates.io/shard-members"
	// byAnnotation has the field whose hashes the holder divides by plans, if it can.
	byAnnotation = "kates.io/shard-by"
	// planAnnotation has the plan that the holder claims, nextAnnotation the one that it proposes.
	planAnnotation = "kates.io/shard-plan"
	nextAnnotation = "kates.io/shard-next"
	// loadAnnotation has how many objects the holder has, by their hashes.
	loadAnnotation = "kates.io/shard-load"
)

// member returns the name of a replica in claims. It is short, and a part of its Lease's name.
func member(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:5])
}

func leaseName(group, member string) string { return group + "-" + member }

// peer is a Lease of the group, as the watch shows it.
type peer struct {
	member       string
	uid, version string
	renewed      time.Time // shows a renewal where there are no versions
	claim        claim
	duration     time.Duration
	by           string // the field of plans; empty: it knows none
	next         *plan  // that it proposes; nil: none
	loads        []shardrange.Load
}

// peerOf reads a Lease. The bool is false for a Lease of another group.
func peerOf(group string, lease *coordinationv1.Lease) (peer, bool) {
	name, ok := strings.CutPrefix(lease.Name, group+"-")
	if !ok || lease.Labels[Label] != group || lease.DeletionTimestamp != nil {
		return peer{}, false
	}
	p := peer{
		member: name, uid: string(lease.UID), version: lease.ResourceVersion, by: lease.Annotations[byAnnotation],
		claim: parseClaim(lease.Annotations), next: parsePlan(lease.Annotations[nextAnnotation]),
		loads: parseLoads(lease.Annotations[loadAnnotation]),
	}
	if d := lease.Spec.LeaseDurationSeconds; d != nil {
		p.duration = time.Duration(*d) * time.Second
	}
	if at := lease.Spec.RenewTime; at != nil {
		p.renewed = at.Time
	}
	return p, true
}

func parseClaim(annotations map[string]string) claim {
	if p := parsePlan(annotations[planAnnotation]); p != nil {
		return p
	}
	members := annotations[claimAnnotation]
	if members == "" {
		return nil
	}
	c := set(strings.Split(members, ","))
	slices.Sort(c)
	return c
}

// annotations are those of a Lease with a claim.
func (c *Config) annotations(w write, load []shardrange.Load) map[string]string {
	all := make(map[string]string)
	switch claimed := w.claim.(type) {
	case set:
		all[claimAnnotation] = strings.Join(claimed, ",")
	case *plan:
		all[claimAnnotation], all[planAnnotation] = member(c.Identity), claimed.String()
	}
	if c.By != "" {
		all[byAnnotation] = c.By
		if w.next != nil {
			all[nextAnnotation] = w.next.String()
		}
		if len(load) > 0 {
			all[loadAnnotation] = loadsText(load)
		}
	}
	return all
}

// loadsMost is how many loads a Lease has at most.
const loadsMost = 64

// loadsText writes loads: hash:objects, and so on.
func loadsText(loads []shardrange.Load) string {
	parts := make([]string, len(loads))
	for i, l := range loads {
		parts[i] = fmt.Sprintf("%x:%d", l.Hash, l.Objects)
	}
	return strings.Join(parts, ",")
}

// parseLoads reads what loadsText writes. What makes no sense is left out: nothing but the balance
// depends on it.
func parseLoads(text string) (all []shardrange.Load) {
	for _, part := range strings.Split(text, ",") {
		from, count, _ := strings.Cut(part, ":")
		hash, err := strconv.ParseUint(from, 16, 64)
		objects, wrong := strconv.Atoi(count)
		if err == nil && wrong == nil && objects > 0 && objects < loadMost && len(all) < loadsMost {
			all = append(all, shardrange.Load{Hash: hash, Objects: objects})
		}
	}
	return all
}

// loadMost is more objects than a load has.
const loadMost = 1 << 32

// object returns the Lease to write: the one with this UID and version, or a new one.
func (c *Config) object(w write, load []shardrange.Load, now time.Time) (*unstructured.Unstructured, error) {
	renewed, seconds := metav1.NewMicroTime(now), int32(c.LeaseDuration/time.Second)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: leaseName(c.Group, member(c.Identity)), UID: types.UID(w.uid), ResourceVersion: w.version,
			Labels: map[string]string{Label: c.Group},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.Identity, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	if all := c.annotations(w, load); len(all) > 0 {
		l.Annotations = all
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(l)
	if err != nil {
		return nil, fmt.Errorf("a lease: %w", err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(lease.Resource.GroupVersion().WithKind("Lease"))
	return u, nil
}
