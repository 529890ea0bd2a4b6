package coherence_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// A write was answered with version 7, and the watch is at version 5. The answer is shown until
// the watch has reached version 7.
func Example() {
	key := types.NamespacedName{Namespace: "prod", Name: "web"}
	stored := &metav1.ObjectMeta{Name: "web", UID: "u", ResourceVersion: "5"}
	view := coherence.NewView(coherence.Options{Whole: true})
	view.Advance("5")

	written := &metav1.ObjectMeta{Name: "web", UID: "u", ResourceVersion: "7"}
	write := coherence.Write{Key: key, UID: "u", Version: "7", Object: written}
	view.Record(write, stored, time.Time{})
	fmt.Println("shown:", view.Read(key, stored).GetResourceVersion(), "pending:", view.Pending())

	view.Observe(coherence.Event{Key: key, UID: "u", Object: written, Version: "7"})
	fmt.Println("shown:", view.Read(key, written).GetResourceVersion(), "pending:", view.Pending())
	// Output:
	// shown: 7 pending: 1
	// shown: 7 pending: 0
}
