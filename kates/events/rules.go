package events

import (
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/kates"
)

// Uses is the need of a recorder: see [kates.Rules]. Events are in the namespaces of the objects
// that they are about, and in "default" for objects without one. If no namespace is given, they may
// be in any.
func Uses(namespaces ...string) kates.Need {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	all := make([]kates.Need, len(namespaces))
	for i, namespace := range namespaces {
		all[i] = kates.Uses(&eventsv1.Event{
			TypeMeta:   metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		}, kates.CanCreate, kates.CanPatch)
	}
	return doors.Need(all, nil).(kates.Need)
}
