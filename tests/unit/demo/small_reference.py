"""A small reference in the layout of `pydoc`'s topics, the same under every release of Python."""

from functools import cache

from ramet.demo.corpus import Corpus

TOPICS = {
    "types": """The standard type hierarchy
***************************

Below is a list of the types that come with the language.


Generator functions
-------------------

A function that uses the "yield" statement is called a *generator
function*. When called, it returns an iterator that runs its body.


Modules
-------

A module is a unit of code that the import system makes a namespace of.
""",
    "yield": """The "yield" statement
*********************

   yield_stmt ::= yield_expression

The "yield" statement is used only in the body of a generator function,
and hands one value at a time to whoever iterates over the generator.
""",
    "return": """The "return" statement
**********************

   return_stmt ::= "return" [expression_list]

"return" leaves the current function call. In a generator function it
says that the generator is done.
""",
    "with": """The "with" statement
********************

   with_stmt ::= "with" with_item ":" suite

The "with" statement wraps a block with methods of a context manager,
so that what was opened is closed however the block ends.
""",
    "async": """Coroutines
**********


The "async with" statement
==========================

An "async with" statement wraps a block with a context manager that may
suspend when it is entered and left.
""",
    "nonlocal": """The "nonlocal" statement
************************

   nonlocal_stmt ::= "nonlocal" identifier

The "nonlocal" statement makes names refer to variables that an
enclosing function has bound already.
""",
    "typesseq": """Sequence Types
**************

There are three basic kinds of sequences: lists, tuples and ranges.


Tuples
======

Tuples are sequences that cannot be changed, often made of values that
differ in kind.
""",
    "attribute-access": """Customizing attribute access
****************************

Methods with special names decide what an attribute of an object is.


__slots__
=========

*__slots__* declares which attributes instances have, and saves the
space of a dictionary for each.
""",
    "string-methods": """String Methods
**************

str.split(sep=None)

   Return a list of the words in the string, cut at the separator.

str.rsplit(sep=None)

   Like "str.split()", except that it begins at the right end.
""",
    "comparisons": """Comparisons
***********

Comparisons may be chained, and yield boolean values each time.


Identity comparisons
====================

The operators "is" and "is not" test the identity of an object: two
names are identical when they mean the same object.
""",
    "lists": """List displays
*************

A list display is a series of expressions in brackets, or a list
comprehension, which makes a list from what a loop gives.
""",
}


@cache
def small_reference() -> Corpus:
    """The topics above as a corpus, indexed once."""
    return Corpus.from_topics(TOPICS)
