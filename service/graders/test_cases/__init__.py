"""Programs run on hidden inputs, text answers and multiple choice, compared with expected outputs outside the sandbox."""
