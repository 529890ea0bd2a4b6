package query

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/object"
)

// ParseSelection returns what both the selectors in words and the others select; nil where there
// are none. A selector that selects everything or nothing is an error: whoever made it meant
// something else.
func ParseSelection(labelText, fieldText string, also object.Selection) (none object.Selection, err error) {
	var s object.Selection
	if s.Labels, err = ParseLabels("label", labelText); err != nil {
		return none, err
	}
	if s.Fields, err = parseSelector("field", fieldText, fields.ParseSelector); err != nil {
		return none, err
	}
	if err := selectsSome(also); err != nil {
		return none, err
	}
	return s.And(also), nil
}

// selectsSome returns an error for a selector that selects everything or nothing. The program that
// made it meant something else.
func selectsSome(s object.Selection) error {
	if s.Labels != nil {
		if some, selectable := s.Labels.Requirements(); !selectable {
			return fmt.Errorf("label selector: %w", errSelectsNothing)
		} else if len(some) == 0 {
			return fmt.Errorf("label selector: %w", errSelectsAll)
		}
	}
	if s.Fields != nil {
		switch {
		case s.Fields.Empty():
			return fmt.Errorf("field selector: %w", errSelectsAll)
		case len(s.Fields.Requirements()) == 0:
			return fmt.Errorf("field selector: %w", errSelectsNothing)
		}
	}
	return nil
}

var (
	// errSelectsAll is the error of a selector that is there, but selects everything, like " ",
	// "," and labels.Everything(). The program that composed it meant fewer objects, and may be
	// about to delete them.
	errSelectsAll = errors.New("it says nothing, so everything would be selected: leave it empty for that")
	// errSelectsNothing is the error of labels.Nothing() and its like.
	errSelectsNothing = errors.New("it selects nothing")
)

// ParseLabels parses a selector of labels; nil if it is empty. what names it in the error.
func ParseLabels(what, selector string) (labels.Selector, error) {
	return parseSelector(what, selector, func(s string) (labels.Selector, error) { return labels.Parse(s) })
}

func parseSelector[S interface{ Empty() bool }](
	what, text string, parser func(string) (S, error),
) (S, error) {
	var none S
	if text == "" {
		return none, nil
	}
	selector, err := parser(text)
	if err == nil && selector.Empty() {
		err = errSelectsAll
	}
	if err != nil {
		return none, fmt.Errorf("%s selector %q: %w", what, text, err)
	}
	return selector, nil
}
