package lease

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// record is what an election writes into the spec of a Lease.
type record struct {
	holder            string // empty: it was released
	seconds           int32  // how long it is valid
	acquired, renewed time.Time
	transitions       int32 // how often the holder has changed
}

func recordOf(spec *coordinationv1.LeaseSpec) record {
	return record{
		holder:  ptr.Deref(spec.HolderIdentity, ""),
		seconds: ptr.Deref(spec.LeaseDurationSeconds, 0), transitions: ptr.Deref(spec.LeaseTransitions, 0),
		acquired: ptr.Deref(spec.AcquireTime, metav1.MicroTime{}).Time,
		renewed:  ptr.Deref(spec.RenewTime, metav1.MicroTime{}).Time,
	}
}

// fields are those of the spec, as JSON has them.
func (r record) fields() (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&coordinationv1.LeaseSpec{
		HolderIdentity: &r.holder, LeaseDurationSeconds: &r.seconds, LeaseTransitions: &r.transitions,
		AcquireTime: &metav1.MicroTime{Time: r.acquired}, RenewTime: &metav1.MicroTime{Time: r.renewed},
	})
}
