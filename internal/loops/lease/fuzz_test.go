package lease

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/internal/base/asjson"
)

func FuzzARecordThatIsWrittenIsReadAgain(f *testing.F) {
	for _, lease := range []string{
		`{"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"leaseTransitions":3,"acquireTime":"2024-01-01T00:00:00.000000Z","renewTime":"2024-01-01T00:00:01.5Z"}}`,
		`{"spec":{"leaseDurationSeconds":-1,"leaseTransitions":2147483648}}`, `{"spec":null}`, `{"spec":{"holderIdentity":null,"renewTime":"0000-01-01T00:00:00Z"}}`,
		`{"spec":{"renewTime":"9999-12-31T23:59:59.999999999Z"},"metadata":{"resourceVersion":7}}`,
	} {
		f.Add([]byte(lease))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		var l coordinationv1.Lease
		if utiljson.Unmarshal(data, &content) != nil || asjson.Decode(content, &l) != nil {
			return
		}
		r := recordOf(&l.Spec)
		fields, err := r.fields()
		if err != nil {
			if r.acquired.Year() > 9999 || r.renewed.Year() > 9999 || r.acquired.Year() < 0 || r.renewed.Year() < 0 {
				return // such a time has no form
			}
			t.Fatalf("%s: %v", data, err)
		}
		var again coordinationv1.LeaseSpec
		if err := asjson.Decode(fields, &again); err != nil {
			t.Fatalf("%s is written as %v: %v", data, fields, err)
		}
		if got := recordOf(&again); got.holder != r.holder || got.seconds != r.seconds || got.transitions != r.transitions ||
			got.stamp() != r.stamp() && !farAway(r.acquired) && !farAway(r.renewed) {
			t.Fatalf("%s is written as %v, and read as %v", data, fields, got)
		}
	})
}

// farAway reports whether a time is none that a clock shows. The zero time is written as null.
func farAway(at time.Time) bool { return !at.IsZero() && (at.Year() < 1 || at.Year() > 9998) }
