package source

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/coherence"
)

// What no answer of a server may be, whatever else it says. Such an answer is an error of its
// request: it is tried again, with growing pauses, and what is shown stays (G5, G8).

// ErrNoVersion is a list that does not say of which version it is: no watch can go on from there,
// and nothing can be told of its age.
var ErrNoVersion = errors.New("the server does not say of which version its list is")

// CheckListVersion is an error if a list's version is of no use, after what has been shown up to
// another one.
func CheckListVersion(rv, beforeRV string) error {
	switch {
	case coherence.Comparable(rv):
		return nil
	case rv == "", rv == "0":
		return fmt.Errorf("%w (resourceVersion %q)", ErrNoVersion, rv)
	case coherence.Comparable(beforeRV):
		return fmt.Errorf("a list of version %q, which does not compare with %s before", rv, beforeRV)
	}
	return nil
}

// adviceMost is the longest pause that a server may ask for.
const adviceMost = 5 * time.Minute

// Advice is the pause that the server asks for with an error, and whether it does.
func Advice(err error) (pause time.Duration, yes bool) {
	seconds, yes := apierrors.SuggestsClientDelay(err)
	if over(seconds) {
		return adviceMost, yes
	}
	return time.Duration(max(seconds, 0)) * time.Second, yes
}

func over(seconds int) bool { return seconds > int(adviceMost/time.Second) }

// cappedAdvice says in an error that a pause which the server asks for is too long.
func cappedAdvice(err error) error {
	if seconds, yes := apierrors.SuggestsClientDelay(err); yes && over(seconds) {
		const says = "%w (the server asks for a pause of %d seconds: it is asked again after %s)"
		return fmt.Errorf(says, err, seconds, adviceMost)
	}
	return err
}
