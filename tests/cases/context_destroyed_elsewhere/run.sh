# The thread whose context is gone is told so.
set -e
cc_program "$CASE/destroy.c" destroy
gives 709 ./destroy
