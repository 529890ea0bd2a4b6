package replay

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/bench/internal/workload"
)

// Kinds is how many kinds a server has: pods, services and config maps, in this order.
const Kinds = 3

// Object is one of them.
type Object = object

// Schedule says which events a [Steady] sends, and when. Event i, from 0, updates object i/3 of
// kind i%3, and begins with the first object again after the last. It is due i+1 intervals after
// the start.
type Schedule struct {
	Objects int // of each kind
	Rate    int // events per second, of all kinds
	Lasts   time.Duration
}

// Total returns how many events there are, of all kinds.
func (s Schedule) Total() int { return s.Due(s.Lasts) }

// Due returns how many events are due by a time after the start.
func (s Schedule) Due(after time.Duration) int {
	return int(min(after, s.Lasts)) * s.Rate / int(time.Second)
}

// At returns when an event is due, from the start.
func (s Schedule) At(event int) time.Duration {
	return time.Duration(((event+1)*int(time.Second) + s.Rate - 1) / s.Rate)
}

// Last returns the latest of the first events that updates an object, or -1.
func (s Schedule) Last(kind, object, events int) int {
	first, round := kind+Kinds*object, Kinds*s.Objects
	if events <= first {
		return -1
	}
	return first + (events-1-first)/round*round
}

// Sources returns the objects of each kind as they are before the first event.
func (s Schedule) Sources() (all [Kinds][]Object) {
	for at, k := range kinds(s.Objects, 0) {
		all[at] = k.objects
	}
	return all
}

// Mend makes an object that the caller owns what an event leaves it as: the event has the next
// version, and its number is the mark.
func Mend(o metav1.Object, event int) {
	annotations := map[string]string{}
	for key, value := range o.GetAnnotations() {
		annotations[key] = value
	}
	annotations[workload.Mark] = strconv.Itoa(event)
	o.SetAnnotations(annotations)
	o.SetResourceVersion(strconv.Itoa(listRV + 1 + event))
}

// EventOf returns the number of the last event that an object shows, or -1 for none. It returns
// false for a mark that is no number.
func EventOf(o metav1.Object) (event int, ok bool) {
	mark, marked := o.GetAnnotations()[workload.Mark]
	if !marked {
		return -1, true
	}
	event, err := strconv.Atoi(mark)
	return event, err == nil && event >= 0
}
