package partition

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two is a snapshot of two resources.
type two struct {
	A, B []*unstructured.Unstructured
}

type one struct {
	A []*unstructured.Unstructured
}

type three struct {
	A, B, C []*unstructured.Unstructured
}

func (t *three) field(i int) []*unstructured.Unstructured {
	return [][]*unstructured.Unstructured{t.A, t.B, t.C}[i]
}

var modelFields = []string{"A", "B", "C"}

const second = time.Second

// busyKeys returns how many keys are not idle.
func busyKeys(p *Partitions) int {
	in := p.scheduler.inspect()
	return in.Waiting + in.Ready + in.Running + in.Resting
}
