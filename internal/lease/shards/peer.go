package shards

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/lease"
)

const (
	// Label of the Leases of a group; its value is the group's name.
	Label = "kates.io/shards"
	// claimAnnotation of a Lease has the members by which its holder goes.
	claimAnnotation = "kates.io/shard-members"
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
}

// peerOf reads a Lease. The bool is false for a Lease of another group.
func peerOf(group string, lease *coordinationv1.Lease) (peer, bool) {
	name, ok := strings.CutPrefix(lease.Name, group+"-")
	if !ok || lease.Labels[Label] != group || lease.DeletionTimestamp != nil {
		return peer{}, false
	}
	p := peer{member: name, uid: string(lease.UID), version: lease.ResourceVersion, claim: parseClaim(lease.Annotations[claimAnnotation])}
	if d := lease.Spec.LeaseDurationSeconds; d != nil {
		p.duration = time.Duration(*d) * time.Second
	}
	if at := lease.Spec.RenewTime; at != nil {
		p.renewed = at.Time
	}
	return p, true
}

func parseClaim(s string) claim {
	if s == "" {
		return nil
	}
	c := claim(strings.Split(s, ","))
	slices.Sort(c)
	return c
}

// object returns the Lease to write: the one with this UID and version, or a new one.
func (c *Config) object(w write, now time.Time) (*unstructured.Unstructured, error) {
	renewed, seconds := metav1.NewMicroTime(now), int32(c.LeaseDuration/time.Second)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: leaseName(c.Group, member(c.Identity)), UID: types.UID(w.uid), ResourceVersion: w.version,
			Labels: map[string]string{Label: c.Group},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.Identity, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	if w.claim != nil {
		l.Annotations = map[string]string{claimAnnotation: strings.Join(w.claim, ",")}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(l)
	if err != nil {
		return nil, fmt.Errorf("a lease: %w", err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(lease.Resource.GroupVersion().WithKind("Lease"))
	return u, nil
}
